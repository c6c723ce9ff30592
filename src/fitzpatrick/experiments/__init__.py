"""The paper's experiments: figures, protocol, tables and report."""
