//! The operator set of the benchmarks: shapes, counts of operations, and results on small shapes.

#[path = "../benches/operators/attention.rs"]
mod attention;
#[path = "../benches/operators/bytes.rs"]
mod bytes;
#[path = "../benches/operators/halves.rs"]
mod halves;
#[path = "../benches/operators/kernels.rs"]
mod kernels;
#[path = "../benches/operators/memory.rs"]
mod memory;
#[path = "../benches/operators/opset.rs"]
mod opset;
#[path = "../benches/operators/pieces.rs"]
mod pieces;
#[path = "../benches/operators/quantised.rs"]
mod quantised;
#[path = "../benches/operators/recurrences.rs"]
mod recurrences;

use tilewright::bench::{Comparison, Variant};

#[test]
fn operations_are_counted_as_the_peers_count_them() {
    let expected: &[(&str, f64)] = &[
        ("C1D.0", 6291456.0),
        ("C2D.0", 236027904.0),
        ("C3D.0", 13217562624.0),
        ("DEP.0", 7225344.0),
        ("DIL.0", 223552896.0),
        ("GMM.0", 4194304.0),
        ("GMM.3", 2147483648.0),
        ("GRP.0", 28901376.0),
        ("T2D.0", 67108864.0),
        ("CBR.0", 239239168.0),
        ("TBG.0", 25165824.0),
        ("NRM.0", 131072.0),
        ("SFM.0", 327680.0),
        ("GMM:1x96x200x33", 1267200.0),
        ("QMM:128x768x768", 150994944.0),
        ("SMM:3x5x7", 210.0),
        ("LNM:3x5", 120.0),
        ("GMM6:1x96x200x33", 1267200.0),
        ("C2D:2x17x13x6x10x3x2x1x2x2", 51840.0),
        ("C1D:1x50x3x5x4x3x2", 2040.0),
        ("CBR:1x9x9x4x8x3x1x1", 49248.0),
        ("T2D:1x5x6x3x4x4x2x1", 11520.0),
        ("DEP:1x11x7x5x3x2x1", 2160.0),
        ("TBG:2x7x3x5", 2940.0),
        ("C2D:1x8x8x4x4x3x1x1", 18432.0),
    ];
    for (name, flops) in expected {
        assert_eq!(opset::operator(name).map(|operator| operator.flops).as_ref(), Ok(flops), "{name}");
    }
}

#[test]
fn two_shapes_of_each_family_of_the_paper_are_measured_by_default() {
    let families = ["C1D", "C2D", "C3D", "DEP", "DIL", "GMM", "GRP", "T2D", "CBR", "TBG", "NRM", "SFM"];
    let listed: Vec<String> =
        families.iter().flat_map(|family| [0, 2].map(|index| format!("{family}.{index}"))).collect();
    assert_eq!(opset::names(), listed);
    for name in families.iter().flat_map(|family| (0..4).map(move |index| format!("{family}.{index}"))) {
        assert!(opset::operator(&name).is_ok(), "{name}");
    }
}

#[test]
fn names_that_mean_nothing_are_explained() {
    let problem = |name| opset::operator(name).map(|_| ()).expect_err("it names nothing");
    assert!(problem("GMM").contains("expected FAMILY.INDEX as in `GMM.0`"), "{}", problem("GMM"));
    assert!(problem("XYZ.0").contains("there is no family `XYZ`, only C1D, C2D"), "{}", problem("XYZ.0"));
    assert!(problem("GMM.7").contains("`GMM` has no shape 7"), "{}", problem("GMM.7"));
    assert!(problem("GMM:1x2").contains("2 numbers given, expected BxNxMxK"), "{}", problem("GMM:1x2"));
    assert!(problem("GMM:1x2x0x4").contains("M is 0"), "{}", problem("GMM:1x2x0x4"));
    assert!(problem("C1D:1x2x1x1x9x1x0").contains("no elements"), "{}", problem("C1D:1x2x1x1x9x1x0"));
}

#[test]
fn every_family_gives_what_its_definition_gives() {
    let small = [
        "CPY:5x37",
        "TRN:7x19",
        "ADD:3x50",
        "GBE:5x33",
        "LNM:4x67",
        "C1D:2x13x3x5x3x2x1",
        "C2D:1x9x8x4x6x3x2x1",
        "C3D:1x5x6x7x2x3x3x2x1",
        "DEP:1x9x7x5x3x1x1",
        "DIL:1x12x11x3x4x3x2x3x2",
        "GMM:2x7x9x5",
        "GMM3:1x33x17x65",
        "GMM6:2x7x9x5",
        "GMM9:1x1x9x31",
        "GRP:1x8x8x8x12x3x2x1x1x4",
        "T2D:1x4x3x5x4x4x2x1",
        "CBR:1x9x8x3x4x3x2x1",
        "TBG:1x6x3x5",
        "NRM:3x5x7",
        "SFM:5x9",
    ];
    for name in small {
        let operator = opset::operator(name).expect("a shape of a family");
        let mut comparison = Comparison::new((operator.kernel)(), &operator.dims, None).expect(name);
        for variant in [Variant::Reference, Variant::Default, Variant::Tuned] {
            if let Err(error) = comparison.check(variant) {
                panic!("{}, {}: {error}", operator.name, variant.name());
            }
        }
    }
}
