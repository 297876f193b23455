//! Machine code as text.

use cranelift_codegen::Context;
use tilewright_core::device::CompileError;
use tilewright_core::program::Program;

use super::{Compiler, failed};
use crate::simd;

impl Compiler {
    /// The machine code of a program, one instruction a line.
    ///
    /// # Errors
    /// When the program cannot be compiled.
    pub(crate) fn list(&self, program: &Program) -> Result<String, CompileError> {
        let code = self.generate(program)?.code;
        let mut text = String::new();
        let mut functions = vec![("kernel".to_owned(), code.main)];
        let bodies = code.bodies.into_iter().enumerate();
        functions.extend(bodies.map(|(position, body)| (format!("parallel body {position}"), body)));
        for (name, function) in functions {
            let mut context = Context::for_function(function);
            context.set_disasm(true);
            let code = context.compile(&*self.isa, &mut Default::default());
            let code = code.map_err(|error| failed(error.inner))?;
            text.push_str(&format!("; {name} of `{}`\n", program.name));
            text.push_str(code.vcode.as_deref().unwrap_or_default());
        }
        for (position, own) in code.leaves.iter().enumerate() {
            text.push_str(&format!("; leaf {position} of `{}`\n{}", program.name, simd::listing(own)));
        }
        for (refusal, count) in &code.refusals {
            text.push_str(&format!("; {count} statements are no leaves: {refusal}\n"));
        }
        Ok(text)
    }
}
