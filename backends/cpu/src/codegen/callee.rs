//! Calls of functions that are not known by address.
//!
//! Generated code refers to a function by its [`Callee`]. Whoever puts the code into a module declares the functions there and
//! [links](link) the code to them. So the same code serves a module in memory and an object file.

use cranelift_codegen::ir::{
    ExtFuncData, ExternalName, FuncRef, Function, InstBuilder, Signature, UserExternalName, Value,
};
use cranelift_module::FuncId;
use smallvec::SmallVec;
use tilewright_core::device::CompileError;

use super::Generator;
use crate::runtime::RuntimeFunction;

/// A function that generated code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callee {
    /// The body of a parallel loop, by its position in [`GeneratedCode::bodies`](super::GeneratedCode::bodies).
    Body(usize),
    /// A leaf, by its position in [`GeneratedCode::leaves`](super::GeneratedCode::leaves).
    Leaf(usize),
    /// A function of the run time.
    Runtime(RuntimeFunction),
}

/// The namespaces of names before they are linked. Modules use 0 for their own functions.
mod namespace {
    pub(super) const BODY: u32 = 1;
    pub(super) const LEAF: u32 = 2;
    pub(super) const RUNTIME: u32 = 3;
}

impl Callee {
    fn name(self) -> UserExternalName {
        let (namespace, index) = match self {
            Callee::Body(position) => (namespace::BODY, position),
            Callee::Leaf(position) => (namespace::LEAF, position),
            Callee::Runtime(function) => (namespace::RUNTIME, function as usize),
        };
        UserExternalName { namespace, index: index as u32 }
    }

    fn of_name(name: &UserExternalName) -> Option<Self> {
        let index = name.index as usize;
        match name.namespace {
            namespace::BODY => Some(Callee::Body(index)),
            namespace::LEAF => Some(Callee::Leaf(index)),
            namespace::RUNTIME => RuntimeFunction::ALL.get(index).copied().map(Callee::Runtime),
            _ => None,
        }
    }

    /// Whether it lies beside the calling code, at a distance that fits into an instruction.
    const fn is_beside(self) -> bool {
        !matches!(self, Callee::Runtime(_))
    }
}

/// Replaces every callee that a function refers to by the function of a module that `declared` gives.
///
/// # Errors
/// Errors of `declared`.
pub(crate) fn link(
    function: &mut Function,
    mut declared: impl FnMut(Callee) -> Result<FuncId, CompileError>,
) -> Result<(), CompileError> {
    let names: Vec<_> =
        function.params.user_named_funcs().iter().map(|(key, name)| (key, name.clone())).collect();
    for (key, name) in names {
        if let Some(callee) = Callee::of_name(&name) {
            let index = declared(callee)?.as_u32();
            function.params.reset_user_func_name(key, UserExternalName { namespace: 0, index });
        }
    }
    Ok(())
}

impl Generator<'_> {
    /// A reference to a function.
    pub(super) fn import(&mut self, callee: Callee, signature: Signature) -> FuncRef {
        let signature = self.builder.import_signature(signature);
        let name = self.builder.func.declare_imported_user_function(callee.name());
        self.builder.import_function(ExtFuncData {
            name: ExternalName::user(name),
            signature,
            colocated: callee.is_beside(),
            patchable: false,
        })
    }

    /// Calls a function of the run time, and gives its results.
    pub(super) fn call_runtime(
        &mut self,
        function: RuntimeFunction,
        arguments: &[Value],
    ) -> SmallVec<[Value; 1]> {
        let signature = function.signature(self.unit.machine.call_conv);
        let function = self.import(Callee::Runtime(function), signature);
        let call = self.ins().call(function, arguments);
        self.builder.inst_results(call).iter().copied().collect()
    }
}
