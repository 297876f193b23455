//! NVIDIA's assembler and disassembler: they accept the kernels, and the machine code has what the text asks for.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of NVIDIA's, by the environment variable that names its file, if it is there; `scripts/fetch-ptxas.sh` fetches it.
fn tool(name: &str, variable: &str) -> Option<PathBuf> {
    // The root of the repository is this package or above it.
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let fetched =
        folders.map(|folder| folder.join("target/ptxas/13.0.88").join(name)).find(|path| path.exists());
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = named.or(fetched).unwrap_or_else(|| PathBuf::from(name));
    let there = path.exists();
    assert!(
        there || std::env::var_os("REQUIRE_PTXAS").is_none(),
        "there is no {name}, or none at {variable}: run scripts/fetch-ptxas.sh"
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
    Sort {
        name: "loads of 16 bytes",
        ptx: &[
            "ld.global.v4.",
            "ld.global.nc.v4.",
            "ld.global.v2.b64",
            "ld.global.nc.v2.b64",
            "ld.global.v2.f64",
            "ld.global.nc.v2.f64",
        ],
        sass: &["LDG.", ".128"],
    },
    Sort {
        name: "stores of 16 bytes",
        ptx: &["st.global.v4.", "st.global.cs.v4.", "st.global.v2.b64", "st.global.v2.f64"],
        sass: &["STG.", ".128"],
    },
    Sort { name: "loads of 16 shared bytes", ptx: &["ld.shared.v4."], sass: &["LDS.128"] },
    Sort { name: "stores of 16 shared bytes", ptx: &["st.shared.v4."], sass: &["STS.128"] },
];

/// The sorts of instructions that a text has, each with their number.
fn expected_instructions(ptx: &str) -> Vec<(&'static Sort, usize)> {
    let count = |sort: &Sort| {
        let is_of_sort =
            |line: &&str| sort.ptx.iter().any(|part| line.contains(part)) && !reads_lower_halves(ptx, line);
        ptx.lines().filter(is_of_sort).count()
    };
    SORTS.iter().map(|sort| (sort, count(sort))).filter(|(_, count)| *count > 0).collect()
}

/// The sorts of instructions of which the machine code has fewer than are expected.
fn missing_instructions(expected: &[(&Sort, usize)], sass: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for (Sort { name, sass: all, .. }, expected) in expected {
        let found = sass.lines().filter(|line| all.iter().all(|part| line.contains(part))).count();
        if found < *expected {
            missing.push(format!("{name}: {found} of {expected}"));
        }
    }
    missing
}

/// Whether a line loads elements of 8 bytes of which only the lower halves are converted: the assembler loads these halves alone.
fn reads_lower_halves(ptx: &str, line: &str) -> bool {
    let Some((_, registers)) = line.split_once(".v2.b64 {") else { return false };
    let registers: Vec<&str> = registers.split('}').next().unwrap_or("").split(", ").collect();
    let mentions = |other: &str, register: &str| {
        other.split(|letter: char| !letter.is_alphanumeric() && letter != '%').any(|word| word == register)
    };
    let is_read_elsewhere = |other: &str| {
        other != line
            && !other.trim_start().starts_with("cvt.u32.u64 ")
            && registers.iter().any(|register| mentions(other, register))
    };
    line.trim_start().starts_with("ld.") && !ptx.lines().any(is_read_elsewhere)
}

/// The resources that the assembler reports for a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// The registers of a thread.
    pub(crate) registers: u32,
    /// The bytes of registers that are kept in memory.
    pub(crate) spilled_bytes: u32,
    /// Shared memory that the module reserves.
    pub(crate) shared_bytes: u32,
}

/// An assembled kernel.
#[derive(Debug)]
struct Assembled {
    name: String,
    resources: Resources,
    /// The sorts of instructions of which the machine code has fewer than the text.
    missing: Vec<String>,
}

/// The kernels of modules as one module, with the number of its module behind the name of each kernel.
fn joined(modules: &[String]) -> String {
    let mut text = String::new();
    let mut declared = Vec::new();
    for (number, module) in modules.iter().enumerate() {
        for line in module.lines() {
            match line.strip_prefix(ENTRY) {
                Some(rest) => {
                    let (name, rest) = rest.split_once('(').expect("a kernel has parameters");
                    text.push_str(&format!("{ENTRY}{name}_{number}({rest}\n"));
                }
                // Lines at the module's level: its version and target, which all share, and declarations.
                None if line.starts_with('.') && !line.starts_with(".reqntid") => {
                    if !declared.contains(&line) {
                        declared.push(line);
                        text.push_str(&format!("{line}\n"));
                    }
                }
                None => text.push_str(&format!("{line}\n")),
            }
        }
    }
    text
}

/// The words before the name of a kernel.
const ENTRY: &str = ".visible .entry ";

/// Assembles a module for an architecture; `None` without an assembler. The error is what the assembler says against the module.
fn assembled(ptx: &str, architecture: &str) -> Option<Result<Vec<Assembled>, String>> {
    let assembler = assembler()?;
    let directory = tempfile::tempdir().expect("a directory");
    let source = directory.path().join("module.ptx");
    let object = directory.path().join("module.cubin");
    std::fs::write(&source, ptx).expect("a file");
    let output = Command::new(assembler)
        .args(["-v", "-arch", architecture, "-o"])
        .arg(&object)
        .arg(&source)
        .output()
        .expect("the assembler runs");
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Some(Err(messages));
    }
    let texts: Vec<(&str, &str)> = ptx.split(ENTRY).skip(1).filter_map(|text| text.split_once('(')).collect();
    let expected: Vec<_> = texts.iter().map(|(name, text)| (*name, expected_instructions(text))).collect();
    // The disassembler takes half a second to start: it runs where there is something to find.
    let is_needed = expected.iter().any(|(_, expected)| !expected.is_empty());
    let sass = match is_needed.then(|| tool("nvdisasm", "NVDISASM")).flatten() {
        Some(disassembler) => disassembled(&disassembler, &object),
        None => String::new(),
    };
    let missing = |name: &str| match expected.iter().find(|(kernel, _)| *kernel == name) {
        Some((_, expected)) if !sass.is_empty() => missing_instructions(expected, section_of(&sass, name)),
        _ => Vec::new(),
    };
    let kernels = resources_in(&messages).into_iter();
    let described = kernels.map(|(name, resources)| Assembled { missing: missing(&name), name, resources });
    Some(Ok(described.collect()))
}

/// The machine code of a kernel.
fn section_of<'a>(sass: &'a str, name: &str) -> &'a str {
    let header = format!("\t.section\t.text.{name},");
    let rest = sass.split_once(&header).map(|(_, rest)| rest);
    let rest = rest.unwrap_or_else(|| panic!("there is no machine code of {name}\n{sass}"));
    rest.split_once("\t.section\t").map_or(rest, |(section, _)| section)
}

/// The machine code of an assembled module, as text.
fn disassembled(disassembler: &Path, object: &Path) -> String {
    let output = Command::new(disassembler).arg("-c").arg(object).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The resources of each kernel that the assembler reports.
fn resources_in(messages: &str) -> Vec<(String, Resources)> {
    let mut kernels: Vec<(String, Resources)> = Vec::new();
    for line in messages.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split_once('\'').map_or(rest, |(name, _)| name);
            kernels.push((name.to_owned(), Resources::default()));
        }
        let Some((_, found)) = kernels.last_mut() else { continue };
        let number_before = |text: &str| -> u32 {
            let before = line.split_once(text).map_or("", |(before, _)| before);
            before.rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
        };
        found.registers = found.registers.max(number_before(" registers"));
        found.shared_bytes += number_before(" bytes smem");
        found.spilled_bytes += number_before(" bytes spill stores") + number_before(" bytes spill loads");
    }
    kernels
}

/// As [`assemble_all`], for one module.
pub(crate) fn assemble(ptx: &str) {
    assemble_all(&[ptx.to_owned()]);
}

/// Has NVIDIA's assembler accept modules for two architectures, without spills, and with machine code that has the wide accesses, the loads
/// of matrices and the products by tensor cores of the text. Many modules at once take little longer than one.
pub(crate) fn assemble_all(modules: &[String]) {
    if modules.is_empty() {
        return;
    }
    let ptx = joined(modules);
    let expected = ptx.matches(ENTRY).count();
    for architecture in ["sm_80", "sm_90"] {
        let Some(outcome) = assembled(&ptx, architecture) else { return };
        let kernels = outcome.unwrap_or_else(|messages| panic!("{architecture}: {messages}\n{ptx}"));
        assert!(expected > 0 && kernels.len() == expected, "{architecture}: {kernels:?}\n{ptx}");
        for Assembled { name, resources, missing } in kernels {
            assert_eq!(resources.spilled_bytes, 0, "{architecture}: {name}: {resources:?}\n{ptx}");
            assert!(missing.is_empty(), "{architecture}: {name}: {missing:?}\n{ptx}");
        }
    }
}

/// The resources of the first kernel of a module, as the assembler reports them; `None` without an assembler.
pub(crate) fn resources(ptx: &str, architecture: &str) -> Option<Resources> {
    let outcome = assembled(ptx, architecture)?;
    let found = outcome.unwrap_or_else(|messages| panic!("{architecture}: {messages}\n{ptx}"));
    Some(found.first().unwrap_or_else(|| panic!("no kernel\n{ptx}")).resources)
}

#[test]
fn modules_are_joined_with_each_kernel_under_a_name_of_its_own() {
    let module = |body: &str| {
        format!(
            ".version 8.0\n.extern .shared b;\n\n.visible .entry k_0(\n    .param p\n)\n.reqntid 1\n{{{body}}}\n"
        )
    };
    let text = joined(&[module("one"), module("two")]);
    assert_eq!(text.matches(".version 8.0\n.extern .shared b;\n").count(), 1);
    assert_eq!(text.matches(".extern").count() + text.matches(".version").count(), 2);
    assert_eq!(text.matches(".reqntid 1").count(), 2);
    assert!(text.contains(".entry k_0_0(\n    .param p\n)\n.reqntid 1\n{one}"), "{text}");
    assert!(text.contains(".entry k_0_1(\n    .param p\n)\n.reqntid 1\n{two}"), "{text}");
}

#[test]
fn machine_code_is_that_of_one_kernel() {
    let sass = "\t.section\t.text.k_1,\"ax\"\nLDG a\n\t.section\t.text.k_10,\"ax\"\nSTG b\n";
    assert_eq!(section_of(sass, "k_1"), "\"ax\"\nLDG a\n");
    assert_eq!(section_of(sass, "k_10"), "\"ax\"\nSTG b\n");
}

#[test]
fn instructions_that_the_assembler_leaves_out_are_noticed() {
    let ptx = "ld.global.nc.v4.f32 {a}\nld.global.v4.f32 {b}\nst.global.v4.f32 {c}\nld.global.f32 d\n";
    let whole = "LDG.E.128.CONSTANT R4\nLDG.E.128 R8\nSTG.E.128 R0\nLDG.E R1\n";
    assert_eq!(missing_instructions(&expected_instructions(ptx), whole), Vec::<String>::new());
    let parts = whole.replace("LDG.E.128 R8", "LDG.E.64 R8\nLDG.E.64 R9");
    assert_eq!(missing_instructions(&expected_instructions(ptx), &parts), ["loads of 16 bytes: 1 of 2"]);
    let halves =
        "ld.global.nc.v2.b64 {%rd3, %rd4}, [%rd2];\ncvt.u32.u64 %r2, %rd3;\ncvt.u32.u64 %r3, %rd4;\n";
    assert_eq!(
        missing_instructions(&expected_instructions(halves), "LDG.E R1\nLDG.E R2\n"),
        Vec::<String>::new()
    );
    let whole = format!("{halves}add.s64 %rd5, %rd4, %rd3;\n");
    assert_eq!(
        missing_instructions(&expected_instructions(&whole), "LDG.E R1\nLDG.E R2\n"),
        ["loads of 16 bytes: 0 of 1"]
    );
}

#[test]
fn resources_are_those_of_each_kernel() {
    let messages = "ptxas info    : Compiling entry function 'one' for 'sm_80'
ptxas info    : Function properties for one
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers, 768 bytes smem, 384 bytes cmem[0]
ptxas info    : Compiling entry function 'two' for 'sm_80'
ptxas info    : Function properties for two
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 384 bytes cmem[0]";
    let one = Resources { registers: 18, spilled_bytes: 12, shared_bytes: 768 };
    let two = Resources { registers: 8, ..Resources::default() };
    assert_eq!(resources_in(messages), [("one".to_owned(), one), ("two".to_owned(), two)]);
}
