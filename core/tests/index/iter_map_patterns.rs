//! Readable cases of iterator maps: the patterns that loop transformations leave behind, and those that must
//! be refused. `x`, `y`, `z` are iterators, `m` and `n` dimensions.

use tilewright_core::ids::VarId;
use tilewright_core::index::Index;
use tilewright_core::index::iter_map::{IterMapError, MapInput, MapLevel, Source, detect};
use tilewright_core::stmt::Guard;

const BIJECTIVE: MapLevel = MapLevel::Bijective;
const SURJECTIVE: MapLevel = MapLevel::Surjective;
const INJECTIVE: MapLevel = MapLevel::Injective;

fn var(number: u32) -> Index {
    Index::var(VarId(number))
}

fn x() -> Index {
    var(0)
}

fn y() -> Index {
    var(1)
}

fn z() -> Index {
    var(2)
}

fn w() -> Index {
    var(3)
}

fn m() -> Index {
    var(10)
}

fn n() -> Index {
    var(11)
}

/// `Σ coefficient · index`
fn sum(terms: &[(i64, Index)]) -> Index {
    terms.iter().fold(Index::constant(0), |sum, (coefficient, index)| sum.add_scaled(index, *coefficient))
}

fn constant(value: i64) -> Index {
    Index::constant(value)
}

/// Iterators `x`, `y`, … of constant extents.
fn domain(extents: &[i64]) -> Vec<(VarId, Index)> {
    extents.iter().enumerate().map(|(var, extent)| (VarId(var as u32), constant(*extent))).collect()
}

fn below(index: Index, bound: i64) -> Guard {
    Guard { index, bound: constant(bound) }
}

/// `index >= bound`
fn at_least(index: Index, bound: i64) -> Guard {
    Guard { index: index.scale(-1), bound: constant(1 - bound) }
}

/// Expects each index to take the values `min + scale · k` for `k` in `0..extent`.
#[track_caller]
fn expect(
    level: MapLevel,
    iterators: &[(VarId, Index)],
    guards: &[Guard],
    cases: &[(Index, (Index, Index, Index))],
) {
    let indices: Vec<Index> = cases.iter().map(|(index, _)| index.clone()).collect();
    let map = detect(&indices, iterators, guards, level).unwrap_or_else(|error| panic!("{error}"));
    for (sum, (index, (extent, min, scale))) in map.outputs.iter().zip(cases) {
        assert_eq!((&sum.extent, &sum.min, &sum.scale), (extent, min, scale), "of {index:?}");
    }
}

fn range(extent: i64, min: i64, scale: i64) -> (Index, Index, Index) {
    (constant(extent), constant(min), constant(scale))
}

#[track_caller]
fn refuse(
    level: MapLevel,
    iterators: &[(VarId, Index)],
    guards: &[Guard],
    indices: &[Index],
) -> IterMapError {
    match detect(indices, iterators, guards, level) {
        Err(error) => error,
        Ok(map) => panic!("{indices:?} was taken for {level:?}: {:?}", map.outputs),
    }
}

#[test]
fn single_iterators_and_constants() {
    let iterators = domain(&[3, 4, 1]);
    expect(
        BIJECTIVE,
        &iterators,
        &[],
        &[(x(), range(3, 0, 1)), (y(), range(4, 0, 1)), (constant(3), range(1, 3, 1))],
    );
    expect(SURJECTIVE, &iterators, &[], &[(x(), range(3, 0, 1))]);
    let unused = refuse(BIJECTIVE, &iterators, &[], &[x()]);
    assert!(matches!(unused, IterMapError::Unused { var: VarId(1), .. }), "{unused}");
    let twice = refuse(SURJECTIVE, &iterators, &[], &[x(), x(), constant(3)]);
    let (first, second) = (MapInput::Index(0), MapInput::Index(1));
    assert_eq!(twice, IterMapError::Overlap { var: VarId(0), first, second });
}

#[test]
fn fused_iterators() {
    let iterators = domain(&[3, 4]);
    let fused = sum(&[(3, y()), (1, x())]);
    expect(BIJECTIVE, &iterators, &[], &[(fused.clone(), range(12, 0, 1))]);
    // A dimension may be the base.
    expect(
        BIJECTIVE,
        &iterators,
        &[],
        &[(&fused.offset(1) + &m(), (constant(12), m().offset(1), constant(1)))],
    );
    refuse(SURJECTIVE, &iterators, &[], &[fused.clone(), y()]);
    refuse(SURJECTIVE, &iterators, &[], &[y(), x().offset(1), y()]);
    let gap = refuse(BIJECTIVE, &iterators, &[], &[sum(&[(4, y()), (1, x())])]);
    assert!(matches!(gap, IterMapError::NotFused { var: VarId(1), .. }), "{gap}");
    let overlapping = refuse(INJECTIVE, &iterators, &[], &[sum(&[(2, y()), (1, x())])]);
    assert!(matches!(overlapping, IterMapError::NotFused { .. }), "{overlapping}");
}

#[test]
fn gaps_are_injective_and_strides_are_scales() {
    expect(INJECTIVE, &domain(&[3, 4]), &[], &[(sum(&[(4, y()), (1, x())]), range(15, 0, 1))]);
    expect(BIJECTIVE, &domain(&[3, 2]), &[], &[(sum(&[(4, x()), (2, y())]), range(6, 0, 2))]);
}

#[test]
fn overlapping_windows_are_surjective_only() {
    let windows = sum(&[(7, x()), (1, y())]);
    expect(MapLevel::Surjective, &domain(&[3, 8]), &[], &[(windows.clone(), range(22, 0, 1))]);
    expect(MapLevel::Surjective, &domain(&[3, 8]), &[], &[(windows.scale(2), range(22, 0, 2))]);
    for level in [BIJECTIVE, MapLevel::Injective] {
        refuse(level, &domain(&[3, 8]), &[], std::slice::from_ref(&windows));
    }
    refuse(MapLevel::Surjective, &domain(&[3, 6]), &[], &[windows]);
    refuse(MapLevel::Surjective, &domain(&[3, 8]), &[], &[sum(&[(7, x()), (2, y())])]);
}

#[test]
fn reversed_iterators() {
    let reversed = sum(&[(-4, x()), (1, y())]);
    expect(BIJECTIVE, &domain(&[3, 4]), &[], &[(reversed.clone(), range(12, -8, 1))]);
    let map = detect(&[reversed.offset(8)], &domain(&[3, 4]), &[], BIJECTIVE).expect("a bijection");
    assert!(map.outputs[0].covers(&constant(12)));
    let inverse = map.inverse(&[w()]).expect("an inverse");
    assert_eq!(inverse[0].1, constant(2).add_scaled(&w().floor_div(4), -1));
    assert_eq!(inverse[1].1, w().modulo(4));
}

#[test]
fn symbolic_fusion() {
    let iterators = vec![(VarId(0), constant(4)), (VarId(1), m())];
    let fused = &x().multiply(&m()) + &y();
    let size = m().scale(4);
    expect(BIJECTIVE, &iterators, &[], &[(fused.clone(), (size.clone(), constant(0), constant(1)))]);
    let shifted = &fused + &m();
    expect(BIJECTIVE, &iterators, &[], &[(shifted, (size.clone(), m(), constant(1)))]);
    expect(BIJECTIVE, &iterators, &[], &[(fused.scale(2), (size, constant(0), constant(2)))]);
    refuse(BIJECTIVE, &iterators, &[], &[&x().multiply(&n()) + &y()]);
}

#[test]
fn split_iterators() {
    let iterators = domain(&[24]);
    expect(
        BIJECTIVE,
        &iterators,
        &[],
        &[(x().floor_div(3), range(8, 0, 1)), (x().modulo(3).scale(2), range(3, 0, 2))],
    );
    expect(
        BIJECTIVE,
        &iterators,
        &[],
        &[
            (x().floor_div(6), range(4, 0, 1)),
            (x().modulo(6).floor_div(2), range(3, 0, 1)),
            (x().modulo(2), range(2, 0, 1)),
        ],
    );
    let gap = refuse(BIJECTIVE, &iterators, &[], &[x().floor_div(6), x().modulo(2)]);
    assert!(matches!(gap, IterMapError::Unused { .. }), "{gap}");
    let crossing = refuse(SURJECTIVE, &iterators, &[], &[x().floor_div(4), x().modulo(6)]);
    assert!(matches!(crossing, IterMapError::Overlap { .. }), "{crossing}");
    let transposed = sum(&[(8, x().modulo(3)), (1, x().floor_div(3))]);
    expect(BIJECTIVE, &iterators, &[], &[(transposed, range(24, 0, 1))]);
}

#[test]
fn uneven_splits_are_injective_only() {
    let indices = [x().floor_div(4), x().modulo(4)];
    let uneven = refuse(BIJECTIVE, &domain(&[10]), &[], &indices);
    assert!(matches!(uneven, IterMapError::NotDivisible { var: VarId(0), .. }), "{uneven}");
    let cases = [(indices[0].clone(), range(3, 0, 1)), (indices[1].clone(), range(4, 0, 1))];
    expect(INJECTIVE, &domain(&[10]), &[], &cases);
    // Each of the parts alone takes all of its values.
    expect(SURJECTIVE, &domain(&[10]), &[], &cases[..1]);
    expect(SURJECTIVE, &domain(&[10]), &[], &cases[1..]);
}

#[test]
fn symbolic_splits() {
    let split = |extent: Index| {
        let cases = [
            (x().divide(&m()), (n(), constant(0), constant(1))),
            (x().remainder(&m()), (m(), constant(0), constant(1))),
        ];
        expect(BIJECTIVE, &[(VarId(0), extent)], &[], &cases);
    };
    split(m().multiply(&n()));
    let other = refuse(BIJECTIVE, &[(VarId(0), n())], &[], &[x().divide(&m()), x().remainder(&m())]);
    assert!(matches!(other, IterMapError::NotDivisible { .. }), "{other}");
    let multiple = (VarId(0), m().scale(8));
    expect(
        BIJECTIVE,
        &[multiple],
        &[],
        &[
            (x().floor_div(4), (m().scale(2), constant(0), constant(1))),
            (x().modulo(4), (constant(4), constant(0), constant(1))),
        ],
    );
}

#[test]
fn a_fused_symbolic_loop_is_split_with_a_guard() {
    // f = 8·x + y < m·n, and the bindings are f / n and f % n.
    let fused = sum(&[(8, x()), (1, y())]);
    let size = m().multiply(&n());
    let iterators = vec![(VarId(0), size.ceil_div(8)), (VarId(1), constant(8))];
    let guards = [Guard { index: fused.clone(), bound: size }];
    let cases = [
        (fused.divide(&n()), (m(), constant(0), constant(1))),
        (fused.remainder(&n()), (n(), constant(0), constant(1))),
    ];
    expect(BIJECTIVE, &iterators, &guards, &cases);
}

#[test]
fn fused_and_split_across_the_boundary() {
    // 64 × 192 points, cut at 128: the lower part mixes both iterators.
    let flat = sum(&[(192, x()), (1, y())]);
    let cases = [(flat.modulo(128), range(128, 0, 1)), (flat.floor_div(128), range(96, 0, 1))];
    expect(BIJECTIVE, &domain(&[64, 192]), &[], &cases);
    let deeper = [
        (flat.modulo(64), range(64, 0, 1)),
        (flat.floor_div(64).modulo(2), range(2, 0, 1)),
        (flat.floor_div(128), range(96, 0, 1)),
    ];
    expect(BIJECTIVE, &domain(&[64, 192]), &[], &deeper);
    // One of the iterators alone cannot be used as well.
    let both = refuse(SURJECTIVE, &domain(&[64, 192]), &[], &[flat.modulo(128), y()]);
    assert!(matches!(both, IterMapError::Overlap { .. } | IterMapError::NotDivisible { .. }), "{both}");
}

#[test]
fn compound_of_splits() {
    let (xo, xi) = (x().floor_div(5), x().modulo(5));
    let (yo, yi) = (y().floor_div(3), y().modulo(3));
    let fused = sum(&[(6, yo), (3, xo), (1, yi)]);
    expect(BIJECTIVE, &domain(&[10, 9]), &[], &[(fused.clone(), range(18, 0, 1)), (xi, range(5, 0, 1))]);
    let map = detect(&[fused], &domain(&[10, 9]), &[], SURJECTIVE).expect("a surjection");
    let splits: Vec<_> = map.outputs[0]
        .splits
        .iter()
        .map(|split| {
            (split.source.clone(), [&split.lower_factor, &split.extent, &split.scale].map(Index::as_constant))
        })
        .collect();
    let digits = |lower, extent, scale| [Some(lower), Some(extent), Some(scale)];
    assert_eq!(
        splits,
        [
            (Source::Iter(VarId(1)), digits(1, 3, 1)),
            (Source::Iter(VarId(0)), digits(5, 2, 3)),
            (Source::Iter(VarId(1)), digits(3, 3, 6)),
        ]
    );
}

#[test]
fn the_source_of_a_nested_split_is_the_fused_iterator() {
    let fused = sum(&[(5, x()), (1, y())]);
    let map = detect(&[fused.floor_div(4), fused.modulo(4)], &domain(&[4, 5]), &[], BIJECTIVE)
        .expect("a bijection");
    let Source::Fused(sum) = &map.outputs[0].splits[0].source else { panic!("{:?}", map.outputs) };
    assert_eq!(sum.extent, constant(20));
    let of: Vec<_> = sum.splits.iter().map(|split| split.source.clone()).collect();
    assert_eq!(of, [Source::Iter(VarId(1)), Source::Iter(VarId(0))]);
    assert_eq!(map.outputs[0].splits[0].lower_factor, constant(4));
}

#[test]
fn guards_narrow_a_fused_iterator() {
    let fused = sum(&[(10, x()), (1, y())]);
    let iterators = domain(&[13, 10]);
    let check = |guards: &[Guard], extent: i64, min: i64| {
        expect(BIJECTIVE, &iterators, guards, &[(fused.clone(), range(extent, min, 1))]);
    };
    check(&[below(fused.clone(), 128)], 128, 0);
    check(&[below(fused.clone(), 128), below(fused.clone(), 64)], 64, 0);
    check(&[below(fused.clone(), 140)], 130, 0);
    check(&[at_least(fused.clone(), 6)], 124, 6);
    check(&[at_least(fused.clone(), 6), below(fused.clone(), 128)], 122, 6);
    // The variables of the condition may stand on both sides.
    check(&[Guard { index: x().scale(10), bound: constant(128).add_scaled(&y(), -1) }], 128, 0);
    expect(BIJECTIVE, &domain(&[48]), &[below(x(), 10)], &[(x(), range(10, 0, 1))]);
}

#[test]
fn guards_narrow_an_inner_fused_iterator() {
    let iterators = domain(&[11, 5, 2]);
    let inner = sum(&[(2, y()), (1, z())]);
    let guards = [below(inner.clone(), 9), at_least(inner.clone(), 1)];
    expect(BIJECTIVE, &iterators, &guards, &[(sum(&[(8, x()), (1, inner.clone())]), range(88, 1, 1))]);
    let outer = sum(&[(8, x()), (1, inner.clone())]);
    let nested = [&guards[..], &[at_least(outer.clone(), 3), below(outer.clone(), 25)]].concat();
    expect(BIJECTIVE, &iterators, &nested, &[(outer, range(22, 3, 1))]);
    let many = sum(&[(20, x()), (10, y()), (3, z()), (1, w())]);
    let guards = [
        below(sum(&[(2, x()), (1, y())]), 13),
        below(many.clone(), 128),
        below(sum(&[(3, z()), (1, w())]), 10),
    ];
    expect(BIJECTIVE, &domain(&[7, 2, 4, 3]), &guards, &[(many, range(128, 0, 1))]);
}

#[test]
fn guards_on_parts_of_an_iterator() {
    let cases = [(x().modulo(16), range(10, 0, 1)), (x().floor_div(16), range(12, 0, 1))];
    let guards = [below(x().modulo(16), 10), below(x().floor_div(16), 12)];
    expect(BIJECTIVE, &domain(&[1024]), &guards, &cases);
    let fused = sum(&[(32, x()), (1, y())]);
    let guards = [below(fused.modulo(16), 10)];
    expect(SURJECTIVE, &domain(&[5, 32]), &guards, &[(fused.modulo(16), range(10, 0, 1))]);
}

#[test]
fn guards_that_leave_no_box_are_refused() {
    let iterators = domain(&[128, 128, 128]);
    let flat = sum(&[(16384, x()), (128, y()), (1, z())]);
    let guards = [below(flat.clone(), 100)];
    expect(BIJECTIVE, &iterators, &guards, &[(flat, range(100, 0, 1))]);
    refuse(BIJECTIVE, &domain(&[3, 4]), &[below(sum(&[(4, x()), (1, y())]), 10)], &[x(), y()]);
    refuse(BIJECTIVE, &domain(&[3, 4]), &[below(sum(&[(1, x()), (1, y())]), 4)], &[x(), y()]);
    // Fewer points are still mapped to different images.
    let cases = [(x(), range(3, 0, 1)), (y(), range(4, 0, 1))];
    expect(INJECTIVE, &domain(&[3, 4]), &[below(sum(&[(1, x()), (1, y())]), 4)], &cases);
    let empty = refuse(BIJECTIVE, &domain(&[3]), &[below(x(), 0)], &[x()]);
    assert_eq!(empty, IterMapError::EmptyDomain { iterator: VarId(0) });
}

#[test]
fn a_guarded_split_of_a_symbolic_loop() {
    let fused = sum(&[(4, x()), (1, y())]);
    let iterators = vec![(VarId(0), m().ceil_div(4)), (VarId(1), constant(4))];
    let guards = [Guard { index: fused.clone(), bound: m() }];
    expect(BIJECTIVE, &iterators, &guards, &[(fused.clone(), (m(), constant(0), constant(1)))]);
    let missing = refuse(BIJECTIVE, &iterators, &[Guard { index: fused, bound: m() }], &[x(), y()]);
    assert!(matches!(missing, IterMapError::NotDivisible { .. }), "{missing}");
}

#[test]
fn the_extent_of_a_tail_loop_is_a_guard() {
    // for x in 0..ceil(m / 8) { for y in 0..min(8, m - 8·x) { 8·x + y } }
    let tail = constant(8).minimum(&m().add_scaled(&x(), -8));
    let iterators = vec![(VarId(0), m().ceil_div(8)), (VarId(1), tail)];
    let fused = sum(&[(8, x()), (1, y())]);
    expect(BIJECTIVE, &iterators, &[], &[(fused, (m(), constant(0), constant(1)))]);
    let triangle = vec![(VarId(0), constant(4)), (VarId(1), x().offset(1))];
    let refused = refuse(BIJECTIVE, &triangle, &[], &[x(), y()]);
    assert_eq!(refused, IterMapError::DependentExtent { iterator: VarId(1) });
}

#[test]
fn what_is_not_affine_is_refused() {
    let product = x().multiply(&y());
    let refused = refuse(INJECTIVE, &domain(&[4, 4]), &[], &[product]);
    assert_eq!(refused, IterMapError::NotQuasiAffine { place: MapInput::Index(0) });
    refuse(SURJECTIVE, &domain(&[24, 8]), &[], &[x().divide(&y().modulo(6))]);
    // Nothing is asked of what depends on no iterator.
    let free = m().modulo(49).floor_div(7);
    expect(BIJECTIVE, &domain(&[1]), &[], &[(free.clone(), (constant(1), free, constant(1)))]);
}

#[test]
fn shifted_divisions_are_injective_only() {
    let shifted = x().offset(3);
    let indices = [shifted.floor_div(4), shifted.modulo(4)];
    let refused = refuse(BIJECTIVE, &domain(&[8]), &[], &indices);
    assert!(matches!(refused, IterMapError::Offset { .. }), "{refused}");
    let map = detect(&indices, &domain(&[8]), &[], INJECTIVE).expect("an injection");
    let inverse = map.inverse(&[y(), z()]).expect("an inverse");
    assert_eq!(inverse, [(VarId(0), sum(&[(4, y()), (1, z())]).offset(-3))]);
}

#[test]
fn inverse_of_a_tiling() {
    let indices = [sum(&[(4, x().floor_div(8)), (1, y().floor_div(16))]), x().modulo(8), y().modulo(16)];
    let map = detect(&indices, &domain(&[32, 64]), &[], BIJECTIVE).expect("a bijection");
    let outputs = [var(20), var(21), var(22)];
    let inverse = map.inverse(&outputs).expect("an inverse");
    assert_eq!(inverse[0].1, sum(&[(8, var(20).floor_div(4)), (1, var(21))]));
    assert_eq!(inverse[1].1, sum(&[(16, var(20).modulo(4)), (1, var(22))]));
    assert!(map.inverse(&outputs[..2]).is_err());
}
