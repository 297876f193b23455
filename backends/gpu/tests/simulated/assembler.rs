//! NVIDIA's assembler and disassembler: they accept the kernels, and the machine code has what the text asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of NVIDIA's, by the environment variable that names its file, if it is there; `scripts/fetch-ptxas.sh` fetches it.
fn tool(name: &str, variable: &str) -> Option<PathBuf> {
    let fetched = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ptxas/13.0.88")).join(name);
    let path = std::env::var_os(variable).map_or(fetched, PathBuf::from);
    let there = path.exists();
    assert!(
        there || std::env::var_os("REQUIRE_PTXAS").is_none(),
        "there is no {name} at {}: run scripts/fetch-ptxas.sh",
        path.display()
    );
    there.then_some(path)
}

fn assembler() -> Option<PathBuf> {
    tool("ptxas", "PTXAS")
}

/// A sort of instruction: parts of its lines in PTX, of which one has to be there, and of those of the machine code, of which all have to
/// be.
struct Sort {
    name: &'static str,
    ptx: &'static [&'static str],
    sass: &'static [&'static str],
}

/// Instructions that a kernel is slow without.
const SORTS: &[Sort] = &[
    Sort {
        name: "products of floats by tensor cores",
        ptx: &["row.col.f32.bf16", "row.col.f32.f16", "row.col.f32.tf32"],
        sass: &["HMMA."],
    },
    Sort { name: "products of integers by tensor cores", ptx: &["row.col.s32"], sass: &["IMMA."] },
    Sort { name: "loads of matrices", ptx: &["ldmatrix."], sass: &["LDSM."] },
    Sort {
        name: "asynchronous copies of 16 bytes",
        ptx: &["cp.async.cg.shared.global"],
        sass: &["LDGSTS.", ".128"],
    },
    Sort { name: "loads of 16 bytes", ptx: &["ld.global.v4.", "ld.global.nc.v4."], sass: &["LDG.", ".128"] },
    Sort { name: "stores of 16 bytes", ptx: &["st.global.v4.", "st.global.cs.v4."], sass: &["STG.", ".128"] },
    Sort { name: "loads of 16 shared bytes", ptx: &["ld.shared.v4."], sass: &["LDS.128"] },
    Sort { name: "stores of 16 shared bytes", ptx: &["st.shared.v4."], sass: &["STS.128"] },
];

/// The sorts of instructions of which the machine code has fewer than the text.
fn missing_instructions(ptx: &str, sass: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for Sort { name, ptx: any, sass: all } in SORTS {
        let expected = ptx.lines().filter(|line| any.iter().any(|part| line.contains(part))).count();
        let found = sass.lines().filter(|line| all.iter().all(|part| line.contains(part))).count();
        if found < expected {
            missing.push(format!("{name}: {found} of {expected}"));
        }
    }
    missing
}

/// Has NVIDIA's assembler accept a module for two architectures, without spills, and with machine code that has the wide accesses, the
/// loads of matrices and the products by tensor cores of the text.
pub(crate) fn assemble(ptx: &str) {
    let Some(assembler) = assembler() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("module.ptx");
    let object = directory.path().join("module.cubin");
    std::fs::write(&source, ptx).expect("a file");
    for architecture in ["sm_80", "sm_90"] {
        let output = Command::new(&assembler)
            .args(["-v", "--warn-on-spills", "-arch", architecture, "-o"])
            .arg(&object)
            .arg(&source)
            .output()
            .expect("the assembler runs");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{architecture}: {messages}\n{ptx}");
        let spills = messages.lines().filter(|line| line.contains("spill"));
        for line in spills {
            assert!(
                line.contains("0 bytes spill stores, 0 bytes spill loads"),
                "{architecture}: {line}\n{ptx}"
            );
        }
        let Some(disassembler) = tool("nvdisasm", "NVDISASM") else { continue };
        let output = Command::new(disassembler).arg("-c").arg(&object).output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let missing = missing_instructions(ptx, &String::from_utf8_lossy(&output.stdout));
        assert!(missing.is_empty(), "{architecture}: {missing:?}\n{ptx}");
    }
}

/// The resources of a kernel, as the assembler reports them.
#[derive(Debug)]
pub(crate) struct Resources {
    /// The registers of a thread.
    pub(crate) registers: u32,
    /// The bytes of registers that are kept in memory.
    pub(crate) spilled_bytes: u32,
}

/// The registers that NVIDIA's assembler gives the first kernel of a module; `None` without an assembler.
pub(crate) fn resources(ptx: &str, architecture: &str) -> Option<Resources> {
    let assembler = assembler()?;
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("module.ptx");
    std::fs::write(&source, ptx).expect("a file");
    let output = Command::new(assembler)
        .args(["-v", "-arch", architecture, "-o", "/dev/null"])
        .arg(&source)
        .output()
        .expect("the assembler runs");
    let messages = String::from_utf8_lossy(&output.stderr);
    let number_before = |text: &str| -> u32 {
        let before = messages.split_once(text).unwrap_or_else(|| panic!("no `{text}`: {messages}")).0;
        before.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number")
    };
    let [stored, loaded] = [" bytes spill stores", " bytes spill loads"].map(number_before);
    Some(Resources { registers: number_before(" registers"), spilled_bytes: stored + loaded })
}

#[test]
fn instructions_that_the_assembler_leaves_out_are_noticed() {
    let ptx = "ld.global.nc.v4.f32 {a}\nld.global.v4.f32 {b}\nst.global.v4.f32 {c}\nld.global.f32 d\n";
    let whole = "LDG.E.128.CONSTANT R4\nLDG.E.128 R8\nSTG.E.128 R0\nLDG.E R1\n";
    assert_eq!(missing_instructions(ptx, whole), Vec::<String>::new());
    let parts = whole.replace("LDG.E.128 R8", "LDG.E.64 R8\nLDG.E.64 R9");
    assert_eq!(missing_instructions(ptx, &parts), ["loads of 16 bytes: 1 of 2"]);
}
