"""Parts of the study: data, fits, records, statistics and the page."""
