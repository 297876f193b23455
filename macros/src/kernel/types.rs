//! Scalar types and their inference.
//!
//! Literals in a definition take the type that rustc infers for them. The same inference runs here, so
//! that the program that is built holds exactly the constants of the reference.

use std::fmt;

use tilewright_vocabulary::DType;

/// The type of a scalar value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScalarType {
    /// A type that tensors can hold.
    Element(DType),
    /// A type parameter of the definition: one of the types that tensors can hold.
    Parameter(TypeParameter),
    Usize,
    Isize,
}

/// A type parameter, by its name and its position among the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeParameter {
    pub(crate) name: &'static str,
    pub(crate) position: usize,
}

impl TypeParameter {
    /// The name is kept for as long as the compiler runs: it is a few bytes for each parameter, and types stay `Copy`.
    pub(crate) fn new(name: String, position: usize) -> Self {
        TypeParameter { name: Box::leak(name.into_boxed_str()), position }
    }
}

/// The element types, as messages list them: `f16, … i64 or bool`.
pub(crate) fn element_types() -> String {
    let of = |fits: fn(&DType) -> bool| DType::COMPUTED.iter().copied().filter(fits).map(DType::name);
    let numbers: Vec<_> = of(|dtype| dtype.is_float()).chain(of(|dtype| dtype.is_int())).collect();
    format!("{} or bool", numbers.join(", "))
}

impl ScalarType {
    /// The type with this name in Rust.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "usize" => Some(ScalarType::Usize),
            "isize" => Some(ScalarType::Isize),
            _ => name.parse().ok().filter(|dtype: &DType| !dtype.is_storage_only()).map(ScalarType::Element),
        }
    }

    /// The name in Rust.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ScalarType::Element(dtype) => dtype.name(),
            ScalarType::Parameter(parameter) => parameter.name,
            ScalarType::Usize => "usize",
            ScalarType::Isize => "isize",
        }
    }

    /// The type that computes it, when it is known here; `usize` and `isize` are computed as `I64`.
    pub(crate) fn dtype(self) -> Option<DType> {
        match self {
            ScalarType::Element(dtype) => Some(dtype),
            ScalarType::Parameter(_) => None,
            ScalarType::Usize | ScalarType::Isize => Some(DType::I64),
        }
    }

    /// Whether tensors can hold it.
    pub(crate) fn is_element(self) -> bool {
        matches!(self, ScalarType::Element(_) | ScalarType::Parameter(_))
    }

    /// Whether it is a type parameter.
    pub(crate) fn is_parameter(self) -> bool {
        matches!(self, ScalarType::Parameter(_))
    }

    /// Whether it is known to be a floating-point type.
    pub(crate) fn is_float(self) -> bool {
        self.dtype().is_some_and(DType::is_float)
    }

    /// Whether Rust itself computes it exactly as the program does.
    pub(crate) fn is_native_float(self) -> bool {
        matches!(self, ScalarType::Element(DType::F32 | DType::F64))
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A type that is perhaps not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeVar(usize);

impl TypeVar {
    /// The type of an expression that has not been checked: that of the table's first entry, of which nothing is
    /// known.
    pub(crate) const UNCHECKED: TypeVar = TypeVar(0);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Link(TypeVar),
    Known(ScalarType),
    Unknown(Unknown),
}

/// Constraints on a type that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unknown {
    family: Family,
    /// A constant from outside the definition takes part, whose type only rustc knows.
    foreign: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Any,
    Integer,
    Float,
}

impl Family {
    /// Whether a literal of this family can have that type.
    fn allows(self, ty: ScalarType) -> bool {
        match self {
            _ if ty.is_parameter() => true,
            Family::Any => true,
            Family::Integer => !ty.is_float() && ty != ScalarType::Element(DType::Bool),
            // Rust has no literals of the narrow types.
            Family::Float => ty.is_native_float(),
        }
    }
}

/// The table of inferred types.
#[derive(Debug)]
pub(crate) struct Types {
    nodes: Vec<Node>,
}

impl Default for Types {
    fn default() -> Self {
        Types { nodes: vec![Node::Unknown(Unknown { family: Family::Any, foreign: true })] }
    }
}

impl Types {
    fn add(&mut self, node: Node) -> TypeVar {
        self.nodes.push(node);
        TypeVar(self.nodes.len() - 1)
    }

    /// A known type.
    pub(crate) fn known(&mut self, ty: ScalarType) -> TypeVar {
        self.add(Node::Known(ty))
    }

    /// The type of an integer literal without a suffix.
    pub(crate) fn integer(&mut self) -> TypeVar {
        self.add(Node::Unknown(Unknown { family: Family::Integer, foreign: false }))
    }

    /// The type of a float literal without a suffix.
    pub(crate) fn float(&mut self) -> TypeVar {
        self.add(Node::Unknown(Unknown { family: Family::Float, foreign: false }))
    }

    /// The type of a constant from outside the definition.
    pub(crate) fn foreign(&mut self) -> TypeVar {
        self.add(Node::Unknown(Unknown { family: Family::Any, foreign: true }))
    }

    /// Makes both types one; `false` when they cannot be.
    pub(crate) fn unify(&mut self, a: TypeVar, b: TypeVar) -> bool {
        if a == TypeVar::UNCHECKED || b == TypeVar::UNCHECKED {
            return true;
        }
        let (a, b) = (self.root(a), self.root(b));
        if a == b {
            return true;
        }
        match (self.nodes[a.0], self.nodes[b.0]) {
            (Node::Unknown(x), Node::Unknown(y)) => {
                let family = if x.family == Family::Any { y.family } else { x.family };
                self.nodes[a.0] = Node::Unknown(Unknown { family, foreign: x.foreign || y.foreign });
                self.nodes[b.0] = Node::Link(a);
                y.family == Family::Any || y.family == family
            }
            (Node::Unknown(x), Node::Known(ty)) => {
                self.nodes[a.0] = Node::Link(b);
                x.family.allows(ty)
            }
            (Node::Known(ty), Node::Unknown(y)) => {
                self.nodes[b.0] = Node::Link(a);
                y.family.allows(ty)
            }
            (Node::Known(x), Node::Known(y)) => x == y,
            (Node::Link(_), _) | (_, Node::Link(_)) => unreachable!("a root is no link"),
        }
    }

    /// The type as far as it is decided, without defaults.
    pub(crate) fn decided(&self, var: TypeVar) -> Option<ScalarType> {
        match self.nodes[self.root(var).0] {
            Node::Known(ty) => Some(ty),
            _ => None,
        }
    }

    /// The type for messages.
    pub(crate) fn describe(&self, var: TypeVar) -> String {
        match self.nodes[self.root(var).0] {
            Node::Known(ty) => format!("`{ty}`"),
            Node::Unknown(Unknown { family: Family::Integer, .. }) => "a whole number".to_owned(),
            Node::Unknown(Unknown { family: Family::Float, .. }) => "a number with a fraction".to_owned(),
            _ => "another type".to_owned(),
        }
    }

    /// The type, with Rust's defaults (`i32`, `f64`) for literals that nothing else decides.
    /// `None` when a constant from outside the definition decides.
    pub(crate) fn resolve(&self, var: TypeVar) -> Option<ScalarType> {
        match self.nodes[self.root(var).0] {
            Node::Known(ty) => Some(ty),
            Node::Unknown(Unknown { foreign: true, .. }) => None,
            Node::Unknown(Unknown { family: Family::Float, .. }) => Some(ScalarType::Element(DType::F64)),
            Node::Unknown(_) => Some(ScalarType::Element(DType::I32)),
            Node::Link(_) => unreachable!("a root is no link"),
        }
    }

    fn root(&self, mut var: TypeVar) -> TypeVar {
        while let Node::Link(next) = self.nodes[var.0] {
            var = next;
        }
        var
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_takes_the_type_it_meets() {
        let mut types = Types::default();
        let (literal, other, element) =
            (types.float(), types.float(), types.known(ScalarType::Element(DType::F32)));
        assert!(types.unify(literal, other));
        assert_eq!(
            types.resolve(literal),
            Some(ScalarType::Element(DType::F64)),
            "the default of a float literal"
        );
        assert!(types.unify(other, element));
        assert_eq!(types.resolve(literal), Some(ScalarType::Element(DType::F32)));
    }

    #[test]
    fn a_foreign_constant_leaves_the_literal_open_until_something_known_comes() {
        let mut types = Types::default();
        let (literal, foreign, element) =
            (types.integer(), types.foreign(), types.known(ScalarType::Element(DType::I8)));
        assert!(types.unify(literal, foreign));
        assert_eq!(types.resolve(literal), None);
        assert!(types.unify(foreign, element));
        assert_eq!(types.resolve(literal), Some(ScalarType::Element(DType::I8)));
    }

    #[test]
    fn conflicts_are_found() {
        let mut types = Types::default();
        let (integer, float) = (types.integer(), types.float());
        assert!(!types.unify(integer, float), "an integer literal is no float");
        for (open, ty) in [
            (types.integer(), ScalarType::Element(DType::F32)),
            (types.float(), ScalarType::Element(DType::I32)),
            (types.float(), ScalarType::Element(DType::F16)),
            (types.known(ScalarType::Element(DType::I32)), ScalarType::Usize),
        ] {
            let known = types.known(ty);
            assert!(!types.unify(open, known), "{ty}");
        }
    }
}
