//! Type parameters.

use quote::ToTokens;

use crate::diagnostics::Diagnostics;
use crate::kernel::class::{Class, Generic};

/// The type parameters of a function; reports what else stands between `<` and `>` and behind `where`. `item` is a
/// kernel or a `#[tensor_fn]`.
pub(super) fn generics(generics: &syn::Generics, item: &str, diagnostics: &Diagnostics) -> Vec<Generic> {
    let mut found: Vec<Generic> = generics
        .params
        .iter()
        .filter_map(|parameter| self::parameter(parameter, item, diagnostics))
        .collect();
    for predicate in generics.where_clause.iter().flat_map(|clause| &clause.predicates) {
        match target(predicate, &mut found) {
            Some((generic, bounds)) => add_bounds(generic, bounds, diagnostics),
            None => diagnostics.error(
                predicate,
                format!("{item} bounds only its type parameters"),
                "remove it, or write `where T: Element` for a parameter `T`",
            ),
        }
    }
    for generic in &mut found {
        if generic.classes.is_empty() {
            let name = &generic.name;
            diagnostics.error(
                name,
                format!("the type parameter `{name}` has no class of element types as a bound"),
                format!("write `{name}: Element`, or one of {}", Class::names()),
            );
            generic.classes.push(Class::Element);
        }
    }
    found
}

fn parameter(parameter: &syn::GenericParam, item: &str, diagnostics: &Diagnostics) -> Option<Generic> {
    match parameter {
        syn::GenericParam::Type(parameter) => {
            if let Some(default) = &parameter.default {
                diagnostics.error(default, "a type parameter of a function has no default", "remove it");
            }
            let mut generic =
                Generic { name: parameter.ident.clone(), bounds: Vec::new(), classes: Vec::new() };
            add_bounds(&mut generic, &parameter.bounds, diagnostics);
            Some(generic)
        }
        syn::GenericParam::Lifetime(parameter) => {
            diagnostics.error(parameter, format!("{item} has no lifetimes of its own"), "remove it");
            None
        }
        syn::GenericParam::Const(parameter) => {
            let name = &parameter.ident;
            diagnostics.error(
                parameter,
                format!("{item} has no constant parameters"),
                format!(
                    "a dimension is named where it occurs, as in `Tensor<f32, {name}>`, and another size is an argument: `{}: usize`",
                    name.to_string().to_lowercase()
                ),
            );
            None
        }
    }
}

type Bounds = syn::punctuated::Punctuated<syn::TypeParamBound, syn::Token![+]>;

/// The parameter that a predicate is about, and its bounds.
fn target<'a>(
    predicate: &'a syn::WherePredicate,
    generics: &'a mut [Generic],
) -> Option<(&'a mut Generic, &'a Bounds)> {
    let syn::WherePredicate::Type(predicate) = predicate else { return None };
    let syn::Type::Path(path) = &predicate.bounded_ty else { return None };
    let name = path.path.get_ident()?;
    let generic = generics.iter_mut().find(|generic| generic.name == *name)?;
    Some((generic, &predicate.bounds))
}

fn add_bounds(generic: &mut Generic, bounds: &Bounds, diagnostics: &Diagnostics) {
    for bound in bounds {
        let path = match bound {
            syn::TypeParamBound::Trait(bound) if bound.lifetimes.is_none() => Some(&bound.path),
            _ => None,
        };
        let class = path
            .and_then(|path| path.segments.last())
            .filter(|segment| segment.arguments.is_none())
            .and_then(|segment| Class::from_name(&segment.ident.to_string()));
        match (path, class) {
            (Some(path), Some(class)) => {
                generic.bounds.push(path.clone());
                if !generic.narrow(class) {
                    diagnostics.error(
                        bound,
                        format!("no element type belongs to all bounds of `{}`", generic.name),
                        "remove one of the bounds",
                    );
                    generic.classes.pop();
                }
            }
            _ => {
                diagnostics.error(
                    bound,
                    format!(
                        "`{}` is no class of element types",
                        bound.to_token_stream().to_string().replace(' ', "")
                    ),
                    format!("an element type is bound by one of {}", Class::names()),
                );
                // One error is enough.
                generic.narrow(Class::Element);
            }
        }
    }
}
