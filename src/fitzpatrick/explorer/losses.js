"use strict";
// The family of losses L_c on the simplex, in double precision: y and θ are arrays of numbers, c ≥ 0
// is the tightness, and α selects the regularizer: the negentropy (1), Tsallis' entropy of order α,
// half the squared norm (2).
//
//   L_c(y, θ) = max over y' of  Ω(y) − Ω(y') − c D_Ω(y, y') + ⟨y' − y, θ⟩
//
// c = 0 is the Fenchel-Young loss, c = 1 the Fitzpatrick loss. The maximizer y*_c is elementwise up
// to one number τ: with s = θ − τ each entry is p = p(s, y), and τ makes them sum to one.
// A regularizer has
//   power           β, such that (Σ p)^β (log Σ p for β = 0) is convex in τ
//   start(y, θ, c)  a number below τ
//   entry(s, y, c)  p and its slope ∂p/∂s
//   term(s, y, c)   what an entry adds to the loss: D + c (Q − D), plus its normal part; D is the
//                   divergence D_ψ(y, p), and Q = ψ''(p) (y − p)² ≥ D, so that nothing cancels

/** Newton's method squares the error: after a step that is so short, the digits are all there. */
const SHORT = 1e-9;

/** ℓ = log ω(z), the root of ℓ + e^ℓ = z: the Wright omega function, without over- and underflow. */
function logOmega(z) {
  let l = z < 1 ? z : Math.log(z);
  for (let i = 0; i < 20; i++) {
    const omega = Math.exp(l);
    const step = (l + omega - z) / (1 + omega);
    l -= step;
    if (Math.abs(step) < SHORT) break;
  }
  return l;
}

/** E(x) = e^x − 1 − x ≥ 0, by its series near 0. */
function expm1MinusX(x) {
  if (Math.abs(x) >= 0.5) return Math.expm1(x) - x;
  let series = 1;
  for (let n = 14; n > 2; n--) series = 1 + (series * x) / n;
  return ((x * x) / 2) * series;
}

function sum(values) {
  return values.reduce((total, value) => total + value, 0);
}

/** p = c y / ω(log(c y) − s), and e^s where c y = 0; with ρ = log(p/y), L_c = Σ y (E(ρ) + c E(−ρ)). */
const negentropy = {
  power: 0,
  start(y, theta) {
    const top = Math.max(...theta);
    return top + Math.log(sum(theta.map((score) => Math.exp(score - top))));
  },
  logRatio(s, y, c) {
    return c === 0 ? s - Math.log(y) : Math.log(c) - logOmega(Math.log(c) + Math.log(y) - s);
  },
  entry(s, y, c) {
    const p = c * y === 0 ? Math.exp(s) : y * Math.exp(this.logRatio(s, y, c));
    return { p, slope: p === 0 ? 0 : (p * p) / (p + c * y) };
  },
  term(s, y, c) {
    if (y === 0) return Math.exp(s);
    const rho = this.logRatio(s, y, c);
    return y * (expm1MinusX(rho) + c * expm1MinusX(-rho));
  },
};

/**
 * With β = α − 1, p is the root of (1/β + c) p^β − c y p^(β−1) = s. In q = p^β the equation is
 * a q − c y q^(−e) = s, with a = 1/β + c and e = (1 − β)/β; for α = 1.5 it is quadratic, and for
 * α = 2, half the squared norm, p = ((s + c y)/(1 + c))₊.
 */
function tsallis(alpha) {
  const beta = alpha - 1;
  const e = (1 - beta) / beta;

  function root(s, y, c) {
    const a = 1 / beta + c;
    if (alpha === 2 || c * y === 0) return Math.max((s + (alpha === 2 ? c * y : 0)) / a, 0);
    if (alpha === 1.5) {
      const length = Math.hypot(s, 2 * Math.sqrt(a * c * y));
      return s > 0 ? (s + length) / (2 * a) : (2 * c * y) / (length - s);
    }
    // Newton's method on a concave function, which increases to the root from any lower bound
    let q =
      s < 0
        ? Math.min(((c * y) / (-2 * s)) ** (1 / e), ((c * y) / (2 * a)) ** beta)
        : Math.max(s / a, ((c * y) / a) ** beta);
    for (let i = 0; i < 100; i++) {
      const pull = c * y * q ** -e;
      const step = (s + pull - a * q) / (a + (e * pull) / q);
      q += step;
      if (step < SHORT * q) break;
    }
    return q;
  }

  /** D_ψ(y, p) = (y^α + β p^α − α p^β y)/(αβ); where p is near y, by E, without cancellation. */
  function divergence(q, p, y) {
    const ratio = Math.log(y / p);
    const total =
      Math.abs(ratio) < 0.5
        ? p * q * (expm1MinusX(alpha * ratio) - alpha * expm1MinusX(ratio))
        : y ** alpha + beta * p * q - alpha * q * y;
    return total / (alpha * beta);
  }

  return {
    power: beta,
    start(y, theta, c) {
      return Math.max(...theta) - (1 / beta + c);
    },
    entry(s, y, c) {
      const q = root(s, y, c);
      const p = q ** (1 / beta);
      if (p === 0) return { p, slope: 0 };
      return { p, slope: p / (q * (1 + c * beta + (c * (1 - beta) * y) / p)) };
    },
    term(s, y, c) {
      const q = root(s, y, c);
      const p = q ** (1 / beta);
      const d = divergence(q, p, y);
      if (p === 0 && alpha < 2) return d + y * Math.max(-s, 0);
      if (alpha === 2) return (1 + c) * d + y * Math.max(-(s + c * y), 0);
      const quadratic = (q * (p - y) * (p - y)) / p;
      return d + c * Math.max(quadratic - d, 0);
    },
  };
}

const REGULARIZERS = new Map([[1, negentropy]]);

function regularizer(alpha) {
  if (!REGULARIZERS.has(alpha)) REGULARIZERS.set(alpha, tsallis(alpha));
  return REGULARIZERS.get(alpha);
}

/** One Newton step in τ for Σ p = 1, taken on (Σ p)^β, or on log Σ p for β = 0. */
function newtonStep(omega, s, y, c) {
  let total = 0;
  let slope = 0;
  for (let i = 0; i < s.length; i++) {
    const entry = omega.entry(s[i], y[i], c);
    total += entry.p;
    slope += entry.slope;
  }
  const log = Math.log(total);
  const beta = omega.power;
  return ((beta === 0 ? log : -Math.expm1(-beta * log) / beta) * total) / slope;
}

/** s = θ − τ; Newton's method increases to τ. */
function shift(omega, y, theta, c) {
  const start = omega.start(y, theta, c);
  const s = theta.map((score) => score - start);
  for (let i = 0; i < 50; i++) {
    const step = newtonStep(omega, s, y, c);
    for (let j = 0; j < s.length; j++) s[j] -= step;
    if (step < SHORT) break;
  }
  return s;
}

/** The loss L_c(y, θ), its maximizer y*_c and its gradient y*_c − y in θ. */
function evaluate(alpha, y, theta, c) {
  const omega = regularizer(alpha);
  const s = shift(omega, y, theta, c);
  const yStar = s.map((value, i) => omega.entry(value, y[i], c).p);
  return {
    value: sum(s.map((value, i) => omega.term(value, y[i], c))),
    yStar,
    gradient: yStar.map((p, i) => p - y[i]),
  };
}

/** The prediction ŷ(θ), which is y*_0: for c = 0 the maximizer does not depend on y. */
function link(alpha, theta) {
  const y = theta.map(() => 1 / theta.length);
  return evaluate(alpha, y, theta, 0).yStar;
}

/** The loss of the indicator of the simplex, at every tightness: max θ − ⟨y, θ⟩. */
function perceptron(y, theta) {
  const top = Math.max(...theta);
  const winner = theta.indexOf(top);
  return {
    value: sum(theta.map((score, i) => y[i] * (top - score))),
    gradient: y.map((target, i) => (i === winner ? 1 : 0) - target),
  };
}
