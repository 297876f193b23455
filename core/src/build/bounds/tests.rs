//! Against brute force: every point of small domains.

use rand_like::Random;

use super::*;
use crate::expr::BinaryOp;
use crate::program::{Access, Buffer, Param, Scope, VariableKind};
use crate::stmt::{Annotations, Iter, IterKind};

/// A small deterministic generator: a linear congruential one with the constants of Knuth's MMIX.
mod rand_like {
    pub(super) struct Random(pub(super) u64);

    impl Random {
        /// A value in `low..high`.
        pub(super) fn within(&mut self, low: i64, high: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            low + ((self.0 >> 33) as i64).rem_euclid(high - low)
        }
    }
}

/// `Σ coefficients · vars + constant`, divided and reduced.
#[derive(Clone, Debug)]
struct Affine {
    coefficients: Vec<i64>,
    constant: i64,
    divisor: i64,
    modulus: Option<i64>,
}

impl Affine {
    fn random(random: &mut Random, vars: usize) -> Self {
        Affine {
            coefficients: (0..vars).map(|_| random.within(-2, 4) * random.within(0, 2)).collect(),
            constant: random.within(-3, 6),
            divisor: if random.within(0, 4) == 0 { random.within(2, 4) } else { 1 },
            modulus: (random.within(0, 6) == 0).then(|| random.within(2, 5)),
        }
    }

    fn index(&self, vars: &[VarId]) -> Index {
        let sum = vars
            .iter()
            .zip(&self.coefficients)
            .fold(Index::constant(self.constant), |sum, (var, c)| sum.add_scaled(&Index::var(*var), *c));
        let quotient = sum.floor_div(self.divisor);
        self.modulus.map_or(quotient.clone(), |modulus| quotient.modulo(modulus))
    }

    fn value(&self, point: &[i64]) -> i64 {
        let sum: i64 = self.constant + point.iter().zip(&self.coefficients).map(|(v, c)| v * c).sum::<i64>();
        let quotient = sum.div_euclid(self.divisor);
        self.modulus.map_or(quotient, |modulus| quotient.rem_euclid(modulus))
    }
}

/// A condition with its meaning.
#[derive(Clone, Debug)]
enum Condition {
    Compare(BinaryOp, Affine, Affine),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

impl Condition {
    fn random(random: &mut Random, vars: usize, depth: u32) -> Self {
        let inner = |random: &mut Random| Box::new(Condition::random(random, vars, depth - 1));
        match if depth == 0 { 0 } else { random.within(0, 6) } {
            3 => Condition::Not(inner(random)),
            4 => Condition::And(inner(random), inner(random)),
            5 => Condition::Or(inner(random), inner(random)),
            _ => {
                let op = [BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge, BinaryOp::Eq, BinaryOp::Ne]
                    [random.within(0, 6) as usize];
                Condition::Compare(op, Affine::random(random, vars), Affine::random(random, vars))
            }
        }
    }

    fn expr(&self, vars: &[VarId]) -> Expr {
        match self {
            Condition::Compare(op, a, b) => {
                Expr::binary(*op, Expr::index(a.index(vars)), Expr::index(b.index(vars)))
            }
            Condition::Not(a) => Expr::unary(crate::expr::UnaryOp::Not, a.expr(vars)),
            Condition::And(a, b) => Expr::select(a.expr(vars), b.expr(vars), Expr::bool(false)),
            Condition::Or(a, b) => Expr::binary(BinaryOp::Or, a.expr(vars), b.expr(vars)),
        }
    }

    fn holds(&self, point: &[i64]) -> bool {
        match self {
            Condition::Compare(op, a, b) => {
                let (a, b) = (a.value(point), b.value(point));
                match op {
                    BinaryOp::Lt => a < b,
                    BinaryOp::Le => a <= b,
                    BinaryOp::Gt => a > b,
                    BinaryOp::Ge => a >= b,
                    BinaryOp::Eq => a == b,
                    _ => a != b,
                }
            }
            Condition::Not(a) => !a.holds(point),
            Condition::And(a, b) => a.holds(point) && b.holds(point),
            Condition::Or(a, b) => a.holds(point) || b.holds(point),
        }
    }
}

fn points(extents: &[i64]) -> Vec<Vec<i64>> {
    extents.iter().fold(vec![Vec::new()], |points, extent| {
        points
            .into_iter()
            .flat_map(|point| (0..*extent).map(move |value| [point.clone(), vec![value]].concat()))
            .collect()
    })
}

/// `y[iters] = if condition { x[index] } else { 0 }`, or a store of that kind.
fn program(extents: &[i64], size: i64, index: &Affine, condition: &Condition, store: bool) -> Program {
    let mut program = Program::new("random");
    let vars: Vec<VarId> = extents.iter().map(|_| program.add_variable("v", VariableKind::Iter)).collect();
    let mut buffer = |name: &str, shape: Vec<Index>| {
        program.add_buffer(Buffer { name: name.into(), dtype: DType::F32, shape, scope: Scope::Global })
    };
    let x = buffer("x", vec![Index::constant(size)]);
    let y = buffer("y", extents.iter().map(|extent| Index::constant(*extent)).collect());
    program.add_param(Param::Buffer(x, if store { Access::InOut } else { Access::Input }));
    program.add_param(Param::Buffer(y, Access::Output));
    let identity: Vec<Index> = vars.iter().map(|var| Index::var(*var)).collect();
    let condition = condition.expr(&vars);
    let body = if store {
        Stmt::when(condition, Stmt::store(x, [index.index(&vars)], Expr::zero(DType::F32)))
    } else {
        let load = Expr::load(DType::F32, x, [index.index(&vars)]);
        Stmt::store(y, identity, Expr::select(condition, load, Expr::zero(DType::F32)))
    };
    let iters = vars.iter().zip(extents).map(|(var, extent)| Iter {
        var: *var,
        extent: Index::constant(*extent),
        kind: IterKind::Spatial,
        binding: Index::constant(0),
    });
    let id = program.fresh_block();
    program.body = Stmt::Block(Arc::new(Block {
        id,
        name: "b".into(),
        iters: iters.collect(),
        guards: Vec::new(),
        init: None,
        body,
        annotations: Annotations::new(),
        location: None,
    }));
    program
}

#[test]
fn small_domains_are_judged_exactly() {
    let mut random = Random(1);
    let (mut inside, mut outside) = (0, 0);
    for case in 0..4000 {
        let extents: Vec<i64> = (0..random.within(1, 4)).map(|_| random.within(1, 6)).collect();
        let index = Affine::random(&mut random, extents.len());
        let condition = Condition::random(&mut random, extents.len(), 2);
        let size = random.within(1, 12);
        let store = case % 2 == 0;
        let program = program(&extents, size, &index, &condition, store);
        let leaves = points(&extents)
            .iter()
            .any(|point| condition.holds(point) && !(0..size).contains(&index.value(point)));
        match check_in_bounds(&program) {
            Ok(checked) => {
                assert!(
                    !leaves,
                    "case {case}: {index:?} under {condition:?} over {extents:?} leaves 0..{size}"
                );
                assert_eq!(checked, program, "case {case}: a check although all is inside");
                inside += 1;
            }
            Err(errors) => {
                assert!(leaves, "case {case}: {index:?} under {condition:?} over {extents:?}\n{errors}");
                outside += 1;
            }
        }
    }
    assert!(inside > 500 && outside > 500, "{inside} inside, {outside} outside: the cases are one-sided");
}

#[test]
fn proofs_hold_at_every_point_of_every_size() {
    let mut random = Random(2);
    let mut proved = 0;
    let (m, n) = (VarId(10), VarId(11));
    let (i, j) = (VarId(0), VarId(1));
    let ranges: Ranges = [(i, Index::var(m)), (j, Index::var(n))].into_iter().collect();
    for case in 0..20000 {
        let index = Affine::random(&mut random, 4);
        let condition = Condition::random(&mut random, 4, 2);
        let vars = [i, j, m, n];
        let mut facts = Facts::default();
        facts.assume(&condition.expr(&vars), true, &ranges);
        if !facts.prove_nonnegative(&index.index(&vars), &ranges) {
            continue;
        }
        proved += 1;
        for sizes in points(&[6, 6]) {
            for point in points(&sizes) {
                let all = [point.clone(), sizes.clone()].concat();
                assert!(
                    !condition.holds(&all) || index.value(&all) >= 0,
                    "case {case}: {index:?} is negative at {all:?} under {condition:?}"
                );
            }
        }
    }
    assert!(proved > 1000, "only {proved} proofs");
}

fn text(text: &str) -> Program {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A convolution with padding and stride over symbolic sizes.
const CONVOLUTION: &str = "kernel conv(H, in x: f32[H], in f: f32[3], out y: f32[(H + 1)/2]) {
  for o in 0..(H + 1)/2 {
    for k in 0..3 {
      block y(vo: spatial (H + 1)/2 = o, vk: reduce 3 = k) {
        init {
          y[vo] = 0.0
        }
        y[vo] = y[vo] + select((index(vo*2 + vk) >= 1) & (index(vo*2 + vk) <= H), x[vo*2 + vk - 1] * f[vk], 0.0)
      }
    }
  }
}
";

#[test]
fn padding_is_proved_for_every_size() {
    let program = text(CONVOLUTION);
    assert_eq!(check_in_bounds(&program).as_ref(), Ok(&program));
}

#[test]
fn what_cannot_be_proved_is_checked_at_run_time() {
    let loose = text(&CONVOLUTION.replace("(index(vo*2 + vk) <= H)", "(f[vk] > 0.0)"));
    let checked = check_in_bounds(&loose).expect("only a load is in doubt").to_string();
    assert!(checked.contains("x[bounded(index(vo*2 + vk - 1), 0..H)] * f[vk]"), "{checked}");
}

#[test]
fn a_certain_violation_is_told_with_the_place() {
    let program = text(&CONVOLUTION.replace("y[vo] = 0.0", "y[vo] = x[vo + H]"));
    let errors = check_in_bounds(&program).expect_err("x[vo + H] is outside").to_string();
    assert!(
        errors.contains("the read of `x` leaves dimension 0 of size H, whatever the sizes are"),
        "{errors}"
    );
    let sizes: Vec<(VarId, i64)> = program.dims().map(|(var, _)| (var, 7)).collect();
    let errors = check_in_bounds(&program.bind_dims(&sizes)).expect_err("still outside").to_string();
    assert!(errors.contains("uses index 7 in dimension 0 of size 7, at o = 0"), "{errors}");
}

#[test]
fn a_store_in_doubt_is_refused() {
    let program = text(
        "kernel shift(N, K, in x: f32[N], inout y: f32[N]) {
  for i in 0..N {
    block y(vi: spatial N = i) {
      if index(vi + K) >= 3 {
        y[vi + K] = x[vi]
      }
    }
  }
}
",
    );
    let errors = check_in_bounds(&program).expect_err("K may be anything").to_string();
    assert!(
        errors.contains("the write to `y` cannot be shown to stay inside dimension 0 of size N"),
        "{errors}"
    );
    let bound = |k: i64| {
        let sizes: Vec<(VarId, i64)> =
            program.dims().map(|(var, name)| (var, if &**name == "N" { 5 } else { k })).collect();
        check_in_bounds(&program.bind_dims(&sizes))
    };
    assert!(bound(0).is_ok());
    let errors = bound(2).expect_err("i + 2 leaves y").to_string();
    assert!(errors.contains("uses index 5 in dimension 0 of size 5, at i = 3"), "{errors}");
}
