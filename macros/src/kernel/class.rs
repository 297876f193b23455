//! Type parameters: classes of element types, and which types a definition can be used with.
//!
//! A parameter is bound by one class at least, `T: Element`. Operations of the body on values of the type narrow it further:
//! `a + b` needs numbers, `x.exp()` floats.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use tilewright_vocabulary::DType;

/// A class of element types: a trait that parameters are bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Element,
    Number,
    Bits,
    Integer,
    Float,
}

impl Class {
    const ALL: [Class; 5] = [Class::Element, Class::Number, Class::Bits, Class::Integer, Class::Float];

    /// The class with this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }

    /// The trait's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::Element => "Element",
            Class::Number => "Number",
            Class::Bits => "Bits",
            Class::Integer => "Integer",
            Class::Float => "Float",
        }
    }

    /// Every name, for messages.
    pub(crate) fn names() -> String {
        Self::ALL.map(|class| format!("`{}`", class.name())).join(", ")
    }

    /// Whether a type belongs to it.
    fn admits(self, dtype: DType) -> bool {
        match self {
            Class::Element => true,
            Class::Number => dtype != DType::Bool,
            Class::Bits => !dtype.is_float(),
            Class::Integer => dtype.is_int(),
            Class::Float => dtype.is_float(),
        }
    }

    /// The class that has an associated constant such as `T::MAX`.
    pub(crate) fn of_constant(name: &str) -> Option<Self> {
        match name {
            "MIN" | "MAX" => Some(Class::Number),
            "INFINITY" | "NEG_INFINITY" | "NAN" | "EPSILON" | "MIN_POSITIVE" => Some(Class::Float),
            _ => None,
        }
    }
}

/// A type parameter of a definition.
#[derive(Clone)]
pub(crate) struct Generic {
    pub(crate) name: Ident,
    /// The bounds as the user wrote them.
    pub(crate) bounds: Vec<syn::Path>,
    /// The classes that the type must belong to: the bounds, and those that the checker adds.
    pub(crate) classes: Vec<Class>,
}

impl Generic {
    /// The types that it can be, in declaration order.
    pub(crate) fn types(&self) -> impl Iterator<Item = DType> + '_ {
        DType::COMPUTED.iter().copied().filter(|dtype| self.classes.iter().all(|class| class.admits(*dtype)))
    }

    /// Adds a class. Whether some type is left.
    pub(crate) fn narrow(&mut self, class: Class) -> bool {
        if !self.classes.contains(&class) {
            self.classes.push(class);
        }
        self.types().next().is_some()
    }
}

/// The declaration: `T: Element + …`.
impl ToTokens for Generic {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (name, bounds) = (&self.name, &self.bounds);
        let classes =
            self.classes.iter().map(|class| Ident::new(class.name(), proc_macro2::Span::call_site()));
        tokens.extend(quote!(#name: #(#bounds +)* #(::tilewright::__private::#classes)+*));
    }
}

/// `<T: …, U: …>`, with a lifetime in front if there is one; nothing without either.
pub(crate) fn declared(generics: &[Generic], lifetime: Option<TokenStream>) -> TokenStream {
    if generics.is_empty() && lifetime.is_none() {
        return TokenStream::new();
    }
    let lifetime = lifetime.into_iter();
    quote!(<#(#lifetime,)* #(#generics),*>)
}

/// `::<T, U>`; nothing without parameters.
pub(crate) fn passed(generics: &[Generic]) -> TokenStream {
    if generics.is_empty() {
        return TokenStream::new();
    }
    let names = generics.iter().map(|generic| &generic.name);
    quote!(::<#(#names),*>)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter() -> Generic {
        let name = Ident::new("T", proc_macro2::Span::call_site());
        Generic { name, bounds: Vec::new(), classes: vec![Class::Element] }
    }

    #[test]
    fn classes_narrow_the_types_that_are_left() {
        let mut t = parameter();
        assert_eq!(t.types().count(), DType::COMPUTED.len());
        assert!(t.narrow(Class::Number));
        assert!(t.types().all(|dtype| dtype != DType::Bool));
        assert!(t.narrow(Class::Float));
        assert!(t.types().eq([DType::F16, DType::BF16, DType::F32, DType::F64]));
        assert!(!t.narrow(Class::Bits), "no float has bits to combine");
    }
}
