//! Kernels in object files: they import functions of the run time and nothing else, and run where a linker puts them.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_module::default_libcall_names;
use cranelift_object::{ObjectBuilder, ObjectModule};
use object::{Object, ObjectSymbol};
use tilewright_core::index::Index;
use tilewright_core::program::Program;

use super::Compiler;
use super::isa::LinkMode;
use crate::machine::Machine;
use crate::runtime::{RuntimeFunction, library_functions};

/// A kernel whose parallel loop needs a workspace, whose first loop calls the remainder, and whose second loop is a leaf.
const KERNEL: &str = "kernel scaled(M, N, in x: f32[M*N], in z: f32[1], out y: f32[M*N]) {
  buffer row: f32[N] global
  parallel for i in 0..M {
    alloc row {
      for j in 0..N { row[j] = x[j + N*i] % z[0] }
      for j in 0..N { y[j + N*i] = row[j] * 2f32 + 1f32 }
    }
  }
}";

const SIZES: [i64; 2] = [5, 37];

/// An object file of the kernel, and the bytes of workspace that each thread needs.
fn object_file(removals: &str) -> (Vec<u8>, u64) {
    let machine = Machine::host().unwrap().clone().without_features(removals).unwrap();
    let compiler = Compiler::new_for(&machine, LinkMode::Object).unwrap();
    let builder = ObjectBuilder::new(Arc::clone(&compiler.isa), "kernels", default_libcall_names()).unwrap();
    let mut module = ObjectModule::new(builder);
    let program: Program = KERNEL.parse().unwrap();
    let placed = compiler.place(&mut module, &mut Context::new(), &program, Some("scaled")).unwrap();
    let dims: Vec<_> = program.dims().map(|(var, _)| var).collect();
    let dim = |var| Some(SIZES[dims.iter().position(|dim| *dim == var)?]);
    let bytes = placed.needs.body.bytes(&|index: &Index| index.evaluate(&dim)).unwrap();
    (module.finish().emit().unwrap(), bytes)
}

#[test]
fn an_object_imports_functions_of_the_run_time_alone() {
    for removals in ["", "-avx512f", "-avx2", "-avx"] {
        let (bytes, _) = object_file(removals);
        let object = object::File::parse(&bytes[..]).unwrap();
        let undefined = object.symbols().filter(ObjectSymbol::is_undefined);
        let mut undefined: Vec<&str> =
            undefined.filter_map(|symbol| symbol.name().ok()).filter(|name| !name.is_empty()).collect();
        undefined.sort_unstable();
        let own = ["tilewright_body_workspace", "tilewright_parallel_for", "tilewright_remainder_f32"];
        let is_library = |name: &&str| library_functions().iter().any(|(known, _)| known == name);
        assert_eq!(undefined.iter().filter(|name| !is_library(name)).count(), own.len(), "{undefined:?}");
        for name in own {
            assert!(undefined.contains(&name), "{name} in {undefined:?}");
            assert!(RuntimeFunction::ALL.iter().any(|function| function.name() == name));
        }
        let exported = object.symbols().find(|symbol| symbol.name() == Ok("scaled")).unwrap();
        assert!(exported.is_global() && exported.is_definition());
    }
}

/// A program that provides the functions of the run time and compares the kernel's results with its own.
fn host_program(body_bytes: u64) -> String {
    let [rows, columns] = SIZES;
    format!(
        r"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
void scaled(const uint64_t *frame);
void tilewright_parallel_for(int64_t threads, int64_t n, void (*body)(void *, int64_t, int64_t), void *context) {{
    (void)threads;
    body(context, 0, n / 2);
    body(context, n / 2, n);
}}
void *tilewright_body_workspace(int64_t bytes) {{
    static void *memory;
    if (!memory) memory = aligned_alloc(64, bytes);
    return memory;
}}
float tilewright_remainder_f32(float a, float b) {{ return fmodf(a, b); }}
int main(void) {{
    static float x[{rows} * {columns}], y[{rows} * {columns}], z[1] = {{7}};
    int64_t status[3] = {{0}};
    for (int i = 0; i < {rows} * {columns}; i++) x[i] = (float)(3 * i - 100);
    uint64_t frame[] = {{(uint64_t)status, 2, 0, {body_bytes}, {rows}, {columns}, (uint64_t)x, (uint64_t)z, (uint64_t)y}};
    scaled(frame);
    for (int i = 0; i < {rows} * {columns}; i++)
        if (y[i] != fmodf(x[i], 7) * 2 + 1) return 1;
    return status[0] == 0 ? 0 : 2;
}}
"
    )
}

/// Compiles and links; false where there is no compiler for C.
fn link_with_cc(folder: &Path) -> bool {
    let mut command = Command::new("cc");
    command.current_dir(folder).args(["-o", "program", "program.c", "kernels.o", "-lm"]);
    match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        output => {
            let output = output.unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
    }
}

#[test]
fn a_linked_object_computes_what_the_kernel_says() {
    for removals in ["", "-avx512f", "-avx2"] {
        let folder = tempfile::tempdir().unwrap();
        let (object, body_bytes) = object_file(removals);
        std::fs::write(folder.path().join("kernels.o"), object).unwrap();
        std::fs::write(folder.path().join("program.c"), host_program(body_bytes)).unwrap();
        if link_with_cc(folder.path()) {
            let status = Command::new(folder.path().join("program")).status().unwrap();
            assert_eq!(status.code(), Some(0), "with features {removals:?}");
        }
    }
}
