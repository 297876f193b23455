use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> SymInt {
    text.parse().unwrap()
}

#[test]
fn products_cancel_in_quotients() {
    let whole = parse("N*C*H*W");
    assert_eq!(whole.floor_div(&parse("C*H")).to_string(), "N*W");
    assert_eq!(parse("6*N + 4").floor_div(&2.into()).to_string(), "3*N + 2");
    assert_eq!(parse("H + 1").floor_div(&parse("H + 1")).to_string(), "1");
    assert_eq!(parse("N*C").floor_div(&parse("W")).to_string(), "div(C*N, W)");
}

#[test]
fn constants_leave_quotients_and_remainders() {
    assert_eq!(parse("H + 5").floor_div(&2.into()).to_string(), "div(H + 1, 2) + 2");
    assert_eq!(parse("H - 1").floor_div(&2.into()).to_string(), "div(H + 1, 2) - 1");
    assert_eq!(parse("div(div(H, 2), 3)").to_string(), "div(H, 6)");
    assert_eq!(parse("2*H + 1").floor_div(&4.into()).to_string(), "div(H, 2)");
    assert_eq!(parse("4*H + W + 7").remainder(&4.into()).to_string(), "rem(W + 3, 4)");
    assert_eq!(parse("7").remainder(&4.into()).to_string(), "3");
    assert_eq!(parse("H").ceil_div(&2.into()).evaluate(&|_| Some(5)), Some(3));
}

#[test]
fn minima_and_maxima_are_decided_where_signs_are_known() {
    assert_eq!(parse("min(N, N + 2)").to_string(), "N");
    assert_eq!(parse("max(N, 0)").to_string(), "N");
    assert_eq!(parse("max(N, M)"), parse("max(M, N)"));
}

#[test]
fn texts_that_are_no_integers_are_refused() {
    for text in ["", "N +", "div(N)", "9223372036854775809", "sqrt(N, 2)", "N N", &"min(".repeat(5000)] {
        assert!(text.parse::<SymInt>().is_err(), "{text}");
    }
}

/// An expression, and how it computes.
#[derive(Clone, Debug)]
enum Tree {
    Constant(i64),
    Symbol(u8),
    Node(u8, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn build(&self) -> SymInt {
        match self {
            Tree::Constant(value) => (*value).into(),
            Tree::Symbol(number) => SymInt::symbol(["A", "B", "C"][usize::from(*number)]),
            Tree::Node(kind, left, right) => {
                let (left, right) = (left.build(), right.build());
                match kind {
                    0 => &left + &right,
                    1 => &left - &right,
                    2 => &left * &right,
                    3 => left.minimum(&right),
                    4 => left.maximum(&right),
                    5 => left.floor_div(&(&right.maximum(&1.into()) + &1.into())),
                    _ => left.remainder(&(&right.maximum(&1.into()) + &1.into())),
                }
            }
        }
    }

    fn compute(&self, symbols: [i64; 3]) -> i64 {
        match self {
            Tree::Constant(value) => *value,
            Tree::Symbol(number) => symbols[usize::from(*number)],
            Tree::Node(kind, left, right) => {
                let (left, right) = (left.compute(symbols), right.compute(symbols));
                match kind {
                    0 => left + right,
                    1 => left - right,
                    2 => left * right,
                    3 => left.min(right),
                    4 => left.max(right),
                    5 => left.div_euclid(right.max(1) + 1),
                    _ => left.rem_euclid(right.max(1) + 1),
                }
            }
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![(-6i64..7).prop_map(Tree::Constant), (0u8..3).prop_map(Tree::Symbol)];
    leaf.prop_recursive(4, 16, 2, |inner| {
        (0u8..7, inner.clone(), inner).prop_map(|(kind, a, b)| Tree::Node(kind, Box::new(a), Box::new(b)))
    })
}

proptest! {
    #[test]
    fn canonical_forms_compute_the_same_and_read_back(tree in trees(), symbols in [0i64..9, 0i64..9, 0i64..9]) {
        let value = tree.build();
        let bind = |symbol: &Symbol| Some(symbols[["A", "B", "C"].iter().position(|&name| name == symbol.name())?]);
        prop_assert_eq!(value.evaluate(&bind), Some(tree.compute(symbols)));
        prop_assert_eq!(&value.to_string().parse::<SymInt>().unwrap(), &value);
        if value.is_not_negative() {
            prop_assert!(tree.compute(symbols) >= 0);
        }
        let replaced = value.substitute(&|symbol| Some(bind(symbol)?.into()));
        prop_assert_eq!(replaced.as_constant(), Some(tree.compute(symbols)));
    }
}
