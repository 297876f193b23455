//! `fn rule(s: &mut Schedule, block: BlockRv) -> RuleResult`

use crate::diagnostics::Diagnostics;

const SHAPE: &str = "write `fn rule(s: &mut Schedule, block: BlockRv) -> RuleResult`";

/// Reports how a function differs from a rule.
pub(super) fn check(signature: &syn::Signature, diagnostics: &Diagnostics) {
    if let Some(token) = &signature.asyncness {
        diagnostics.error(token, "a rule cannot be `async`", "remove `async`");
    }
    if let Some(token) = &signature.unsafety {
        diagnostics.error(token, "a rule cannot be `unsafe`", "remove `unsafe`");
    }
    if let Some(abi) = &signature.abi {
        diagnostics.error(abi, "a rule has no ABI of its own", "remove `extern`");
    }
    if !signature.generics.params.is_empty() {
        diagnostics.error(&signature.generics.params, "a rule has no generic parameters", SHAPE);
    }
    let inputs: Vec<_> = signature.inputs.iter().collect();
    match inputs.as_slice() {
        [syn::FnArg::Typed(schedule), syn::FnArg::Typed(block)] => {
            if !is_schedule(&schedule.ty) {
                diagnostics.error(&schedule.ty, "the first argument of a rule is `&mut Schedule`", SHAPE);
            }
            if !is_named(&block.ty, "BlockRv") {
                diagnostics.error(&block.ty, "the second argument of a rule is a `BlockRv`", SHAPE);
            }
        }
        [] => diagnostics.error(&signature.ident, "a rule takes the schedule and a block", SHAPE),
        _ => diagnostics.error(&signature.inputs, "a rule takes the schedule and a block", SHAPE),
    }
    match &signature.output {
        syn::ReturnType::Type(_, ty) if is_named(ty, "RuleResult") => {}
        syn::ReturnType::Type(_, ty) => diagnostics.error(ty, "a rule returns a `RuleResult`", SHAPE),
        syn::ReturnType::Default => {
            diagnostics.error(&signature.ident, "a rule returns a `RuleResult`", SHAPE)
        }
    }
}

fn is_schedule(ty: &syn::Type) -> bool {
    matches!(ty, syn::Type::Reference(reference)
        if reference.mutability.is_some() && is_named(&reference.elem, "Schedule"))
}

fn is_named(ty: &syn::Type, name: &str) -> bool {
    matches!(ty, syn::Type::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == name))
}
