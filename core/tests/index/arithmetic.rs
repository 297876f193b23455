//! Index arithmetic, simplification and bounds against brute force.

use super::support::{Tree, affine_tree, config, constant_ranges, evaluate, general_tree, points};
use proptest::prelude::*;
use tilewright_core::ids::VarId;
use tilewright_core::index::iter_map::{MapLevel, detect};
use tilewright_core::index::{Base, Index, NO_MODULUS, Ranges, Term};
use tilewright_core::stmt::Guard;

const VARS: usize = 4;

fn extents() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(prop_oneof![1 => Just(1i64), 2 => Just(4), 2 => 2i64..=7], VARS)
}

/// Points far outside any range, to test what must hold for all integers.
fn wide_points() -> impl Strategy<Value = Vec<Vec<i64>>> {
    prop::collection::vec(prop::collection::vec(-70i64..=70, VARS), 24)
}

/// Takes an index apart and puts it together again through the public operations.
fn rebuild(index: &Index) -> Index {
    let mut result = Index::constant(index.constant_part());
    for Term { digit, coefficient } in index.terms() {
        let base = match &digit.base {
            Base::Sum(sum) => rebuild(sum),
            other => other.to_index(),
        };
        let quotient = base.floor_div(digit.divisor);
        let digit = if digit.modulus == NO_MODULUS { quotient } else { quotient.modulo(digit.modulus) };
        result = result.add_scaled(&digit, *coefficient);
    }
    result
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn canonical_forms_keep_the_value(tree in general_tree(VARS), points in wide_points()) {
        let index = tree.index();
        for point in &points {
            prop_assert_eq!(evaluate(&index, point), tree.value(point), "{:?} at {:?}", index, point);
        }
    }

    #[test]
    fn canonical_forms_are_rebuilt_from_their_parts(tree in affine_tree(VARS)) {
        let index = tree.index();
        prop_assert_eq!(rebuild(&index), index);
    }

    #[test]
    fn operations_agree_with_their_definitions(
        a in affine_tree(VARS), b in affine_tree(VARS), factor in -9i64..=9, divisor in 1i64..=12,
        points in wide_points(),
    ) {
        let (x, y) = (a.index(), b.index());
        let (sum, quotient, rest) = (x.add_scaled(&y, factor), x.floor_div(divisor), x.modulo(divisor));
        let (up, product) = (x.ceil_div(divisor), x.multiply(&y));
        let back = quotient.scale(divisor).add_scaled(&rest, 1);
        for point in &points {
            let (u, v) = (a.value(point), b.value(point));
            prop_assert_eq!(evaluate(&sum, point), u + factor * v);
            prop_assert_eq!(evaluate(&quotient, point), u.div_euclid(divisor));
            prop_assert_eq!(evaluate(&rest, point), u.rem_euclid(divisor));
            prop_assert_eq!(evaluate(&up, point), (u + divisor - 1).div_euclid(divisor));
            prop_assert_eq!(evaluate(&product, point), u * v);
            prop_assert_eq!(evaluate(&back, point), u);
        }
    }

    #[test]
    fn substitution_is_composition(
        outer in general_tree(VARS), inner in affine_tree(VARS), var in 0..VARS, points in wide_points(),
    ) {
        let replacement = inner.index();
        let index = outer.index().substitute(&|v: VarId| (v.0 as usize == var).then(|| replacement.clone()));
        for point in &points {
            let mut moved = point.clone();
            moved[var] = inner.value(point);
            prop_assert_eq!(evaluate(&index, point), outer.value(&moved));
        }
    }

    #[test]
    fn simplification_keeps_the_value_and_is_idempotent(tree in general_tree(VARS), extents in extents()) {
        let ranges = constant_ranges(&extents);
        let index = tree.index();
        let simple = index.simplify(&ranges);
        for point in points(&extents) {
            prop_assert_eq!(evaluate(&simple, &point), tree.value(&point), "{:?} became {:?}", index, simple);
        }
        prop_assert_eq!(simple.simplify(&ranges), simple.clone(), "again {:?}", simple);
    }

    #[test]
    fn intervals_contain_every_value(tree in general_tree(VARS), extents in extents()) {
        let interval = tree.index().interval(&constant_ranges(&extents));
        for point in points(&extents) {
            let value = tree.value(&point);
            prop_assert!(interval.contains(value), "{} is not in {:?}", value, interval);
        }
    }

    #[test]
    fn intervals_of_independent_digits_are_tight(
        digits in prop::collection::vec((1i64..=9, 0i64..=9, -9i64..=9), VARS), extents in extents(),
        constant in -9i64..=9,
    ) {
        let mut tree = Tree::Constant(constant);
        for (var, (divisor, modulus, coefficient)) in digits.into_iter().enumerate() {
            let mut digit = Tree::Div(Box::new(Tree::Var(var)), divisor);
            if modulus > 1 {
                digit = Tree::Mod(Box::new(digit), modulus);
            }
            tree = Tree::Add(Box::new(tree), Box::new(Tree::Scale(Box::new(digit), coefficient)));
        }
        let interval = tree.index().interval(&constant_ranges(&extents));
        let values: Vec<i64> = points(&extents).iter().map(|point| tree.value(point)).collect();
        prop_assert_eq!(Some(&interval.min), values.iter().min());
        prop_assert_eq!(Some(&interval.max), values.iter().max());
    }

    #[test]
    fn bounds_hold_and_are_free_of_what_was_eliminated(
        tree in general_tree(VARS), extents in extents(), eliminated in prop::collection::vec(any::<bool>(), VARS),
    ) {
        let index = tree.index();
        let over: Ranges = (0..VARS)
            .filter(|var| eliminated[*var])
            .map(|var| (VarId(var as u32), Index::constant(extents[var])))
            .collect();
        let (lower, upper) = (index.lower_bound(&over), index.upper_bound(&over));
        for bound in [&lower, &upper].into_iter().flatten() {
            bound.for_each_var(&mut |var| assert!(!over.contains(var), "{var:?} is left in {bound:?}"));
        }
        for point in points(&extents) {
            let value = tree.value(&point);
            if let Some(lower) = &lower {
                prop_assert!(evaluate(lower, &point) <= value, "{:?} of {:?} at {:?}", lower, index, point);
            }
            if let Some(upper) = &upper {
                prop_assert!(value <= evaluate(upper, &point), "{:?} of {:?} at {:?}", upper, index, point);
            }
        }
    }

    #[test]
    fn affine_indices_over_constant_ranges_always_have_bounds(tree in affine_tree(VARS), extents in extents()) {
        let ranges = constant_ranges(&extents);
        let index = tree.index();
        let constant = |bound: Option<Index>| bound.and_then(|bound| bound.as_constant());
        prop_assert!(constant(index.lower_bound(&ranges)).is_some(), "{:?}", index);
        prop_assert!(constant(index.upper_bound(&ranges)).is_some(), "{:?}", index);
    }

    #[test]
    fn extreme_numbers_never_panic(
        tree in general_tree(VARS), factors in prop::collection::vec(extreme(), VARS), constant in extreme(),
        extents in prop::collection::vec(extreme(), VARS), divisor in extreme(),
    ) {
        let large = (0u32..).zip(&factors).fold(Index::constant(constant), |sum, (var, factor)| {
            sum.add_scaled(&Index::var(VarId(var)), *factor)
        });
        let divisor = divisor.max(1);
        let ranges = constant_ranges(&extents);
        let guards = [Guard { index: large.clone(), bound: Index::constant(constant) }];
        let loops: Vec<(VarId, Index)> =
            (0..).map(VarId).zip(extents.iter().map(|extent| Index::constant(*extent))).collect();
        for index in [large.clone(), large.floor_div(divisor), large.modulo(divisor), &large + &tree.index()] {
            let index = index.multiply(&large).minimum(&index).simplify(&ranges);
            let _ = (index.interval(&ranges), index.lower_bound(&ranges), index.upper_bound(&ranges));
            let _ = (index.is_provably_less(&large, &ranges), index.ceil_div(divisor));
            let _ = detect(&[index], &loops, &guards, MapLevel::Injective);
        }
        let _ = detect(&[large.floor_div(divisor), large.modulo(divisor)], &loops, &guards, MapLevel::Bijective);
    }

    #[test]
    fn proofs_with_symbolic_extents_never_lie(
        a in general_tree(VARS), b in general_tree(VARS), shape in symbolic_extents(), offset in 0i64..=3,
    ) {
        // `v0` is a dimension; the extents of the others mention it and those before.
        let ranges: Ranges = (1..VARS).map(|var| (VarId(var as u32), shape[var - 1].index())).collect();
        let (x, y) = (a.index(), b.index().offset(offset));
        let less = x.is_provably_less(&y, &ranges);
        let nonnegative = x.is_provably_nonnegative(&ranges);
        let (lower, upper) = (x.lower_bound(&ranges), x.upper_bound(&ranges));
        let simple = x.simplify(&ranges);
        for point in triangular_points(&shape) {
            let value = a.value(&point);
            prop_assert_eq!(evaluate(&simple, &point), value, "{:?} simplified at {:?}", x, point);
            prop_assert!(!less || value < b.value(&point) + offset, "{:?} < {:?} fails at {:?}", x, y, point);
            prop_assert!(!nonnegative || value >= 0, "{:?} is negative at {:?}", x, point);
            if let Some(bound) = &lower {
                prop_assert!(evaluate(bound, &point) <= value, "lower {:?} of {:?} at {:?}", bound, x, point);
            }
            if let Some(bound) = &upper {
                prop_assert!(value <= evaluate(bound, &point), "upper {:?} of {:?} at {:?}", bound, x, point);
            }
        }
    }
}

/// Numbers at which arithmetic overflows.
fn extreme() -> impl Strategy<Value = i64> {
    let limits =
        vec![i64::MIN, i64::MIN + 1, -(1 << 62), -1, 0, 1, 3, 1 << 31, 1 << 62, i64::MAX - 1, i64::MAX];
    prop::sample::select(limits)
}

/// Extents of `v1`, `v2`, … in terms of the variables before each.
fn symbolic_extents() -> impl Strategy<Value = Vec<Tree>> {
    let dim = || Box::new(Tree::Var(0));
    let first = prop_oneof![
        Just(Tree::Var(0)),
        Just(Tree::Div(dim(), 4)),
        Just(Tree::Div(Box::new(Tree::Add(dim(), Box::new(Tree::Constant(3)))), 4)),
        (1i64..=5).prop_map(Tree::Constant),
    ];
    let remaining = Tree::Sub(dim(), Box::new(Tree::Scale(Box::new(Tree::Var(1)), 4)));
    let second = prop_oneof![
        Just(Tree::Constant(4)),
        Just(Tree::Min(Box::new(Tree::Constant(4)), Box::new(remaining))),
        Just(Tree::Add(Box::new(Tree::Var(1)), Box::new(Tree::Constant(1)))),
    ];
    let third = prop_oneof![Just(Tree::Constant(3)), Just(Tree::Var(0)), Just(Tree::Var(2))];
    (first, second, third).prop_map(|(a, b, c)| vec![a, b, c])
}

/// Every point of the loops, for small values of the dimension.
fn triangular_points(shape: &[Tree]) -> Vec<Vec<i64>> {
    let dims: Vec<Vec<i64>> = (0..10).map(|dim| vec![dim]).collect();
    shape.iter().fold(dims, |points, extent| {
        let longer = |point: Vec<i64>| {
            let extent = extent.value(&point);
            (0..extent).map(move |value| point.iter().copied().chain([value]).collect::<Vec<i64>>())
        };
        points.into_iter().flat_map(longer).collect()
    })
}
