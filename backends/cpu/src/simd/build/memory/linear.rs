//! Indices as sums of products.
//!
//! A run-time stride makes an index opaque: `i * N` is one value to [`Index`]. Here it is a product again, so that the
//! part that a loop changes, and by how much, can be seen.

use smallvec::SmallVec;
use tilewright_core::expr::{BinaryOp, Expr, ExprKind};
use tilewright_core::ids::VarId;
use tilewright_core::index::{Base, Digit, Index};

/// A factor of a product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::simd::build) enum Atom {
    /// A variable.
    Var(VarId),
    /// Anything else, as one.
    Digit(Digit),
}

/// A coefficient times some factors, which are sorted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::simd::build) struct Product {
    pub(in crate::simd::build) atoms: SmallVec<[Atom; 2]>,
    pub(in crate::simd::build) coefficient: i64,
}

/// Products and a constant. No two products have the same factors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::simd::build) struct Sum {
    pub(in crate::simd::build) products: SmallVec<[Product; 4]>,
    pub(in crate::simd::build) constant: i64,
}

impl Atom {
    /// Whether the variable occurs in it.
    pub(in crate::simd::build) fn mentions(&self, var: VarId) -> bool {
        match self {
            Atom::Var(own) => *own == var,
            Atom::Digit(digit) => Index::digit(digit.clone()).mentions(var),
        }
    }
}

impl Product {
    /// The change when `var` grows by one, if this is a multiple of the variable.
    pub(in crate::simd::build) fn slope(&self, var: VarId) -> Option<Product> {
        let position = self.atoms.iter().position(|atom| *atom == Atom::Var(var))?;
        let mut rest = self.clone();
        rest.atoms.remove(position);
        rest.atoms.iter().all(|atom| !atom.mentions(var)).then_some(rest)
    }
}

impl Sum {
    /// An index taken apart. It has no lanes.
    pub(in crate::simd::build) fn of(index: &Index) -> Self {
        let mut sum = Sum { products: SmallVec::new(), constant: index.constant_part() };
        for term in index.terms() {
            let part = of_digit(&term.digit);
            sum.add(&part, term.coefficient);
        }
        sum.products.sort();
        sum
    }

    /// The sum times a constant.
    pub(in crate::simd::build) fn scaled(mut self, factor: i64) -> Self {
        for product in &mut self.products {
            product.coefficient = product.coefficient.wrapping_mul(factor);
        }
        self.constant = self.constant.wrapping_mul(factor);
        self.products.retain(|product| product.coefficient != 0);
        self
    }

    fn add(&mut self, other: &Sum, factor: i64) {
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        for product in &other.products {
            let coefficient = product.coefficient.wrapping_mul(factor);
            match self.products.iter_mut().find(|own| own.atoms == product.atoms) {
                Some(own) => own.coefficient = own.coefficient.wrapping_add(coefficient),
                None => self.products.push(Product { atoms: product.atoms.clone(), coefficient }),
            }
        }
        self.products.retain(|product| product.coefficient != 0);
    }

    fn times(&self, other: &Sum) -> Sum {
        let mut result = Sum { products: SmallVec::new(), constant: 0 };
        result.add(self, other.constant);
        result.constant = self.constant.wrapping_mul(other.constant);
        result.add(&Sum { constant: 0, ..other.clone() }, self.constant);
        for a in &self.products {
            for b in &other.products {
                let mut atoms: SmallVec<[Atom; 2]> = a.atoms.iter().chain(&b.atoms).cloned().collect();
                atoms.sort();
                let product = Product { atoms, coefficient: 1 };
                let product = Sum { products: SmallVec::from_iter([product]), constant: 0 };
                result.add(&product, a.coefficient.wrapping_mul(b.coefficient));
            }
        }
        result
    }
}

fn of_digit(digit: &Digit) -> Sum {
    let one = |atom| Sum {
        products: SmallVec::from_iter([Product { atoms: SmallVec::from_iter([atom]), coefficient: 1 }]),
        constant: 0,
    };
    match &digit.base {
        Base::Var(var) if digit.is_whole() => one(Atom::Var(*var)),
        Base::Value(value) if digit.is_whole() => match product(value) {
            Some((a, b)) => Sum::of(&Index::value(a.clone())).times(&Sum::of(&Index::value(b.clone()))),
            None => one(Atom::Digit(digit.clone())),
        },
        _ => one(Atom::Digit(digit.clone())),
    }
}

fn product(value: &Expr) -> Option<(&Expr, &Expr)> {
    match value.kind() {
        ExprKind::Binary(BinaryOp::Mul, a, b) => Some((a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_of_variables_are_seen() {
        let [i, k, n] = [0, 1, 2].map(|id| Index::var(VarId(id)));
        let index = &(&i.scale(4) + &k).multiply(&n) + &k.offset(3);
        let sum = Sum::of(&index);
        assert_eq!(sum.constant, 3);
        assert_eq!(sum.products.len(), 3);
        let slopes: Vec<Product> =
            sum.products.iter().filter_map(|product| product.slope(VarId(1))).collect();
        let atoms: Vec<&[Atom]> = slopes.iter().map(|slope| &slope.atoms[..]).collect();
        assert_eq!(atoms, [&[][..], &[Atom::Var(VarId(2))]]);
    }

    #[test]
    fn a_variable_inside_a_remainder_has_no_slope() {
        let i = Index::var(VarId(0));
        let sum = Sum::of(&i.modulo(3));
        assert_eq!(sum.products[0].slope(VarId(0)), None);
        assert!(sum.products[0].atoms[0].mentions(VarId(0)));
    }
}
