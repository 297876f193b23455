//! Settings by environment variables. Each case runs the same small program in a process of its own.

use std::process::{Command, Output};

use tilewright::prelude::*;

/// The child program. It prints `done`, or the error.
const PROGRAM: &str = "the_program_that_the_cases_run";
/// Set for the program, so that it does nothing when it is run as a test of its own.
const CHILD: &str = "TILEWRIGHT_TEST_CHILD";

/// 2 · x
#[tensor_kernel]
fn twice(x: &Tensor<f32, N>) -> Tensor<f32, N> {
    let mut y = Tensor::zeros();
    for i in 0..N {
        y[[i]] = 2.0 * x[[i]];
    }
    y
}

#[test]
fn the_program_that_the_cases_run() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let x = Tensor::from_fn([100], |[i]| i as f32).unwrap();
    match twice(&x) {
        Ok(y) => println!("y[99] = {}, {} threads", y[[99]], tilewright::threads().unwrap()),
        Err(error) => println!("error: {error}"),
    }
}

fn run(variables: &[(&str, &str)]) -> (String, String) {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    for name in ["BACKGROUND", "THREADS", "DUMP", "VERIFY", "RECORDS", "CPU_FEATURES"] {
        command.env_remove(format!("TILEWRIGHT_{name}"));
    }
    command.args(["--exact", PROGRAM, "--nocapture"]).env(CHILD, "1").envs(variables.iter().copied());
    let Output { stdout, stderr, .. } = command.output().unwrap();
    (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

#[test]
fn good_settings_are_obeyed() {
    for variables in [
        &[("TILEWRIGHT_THREADS", "1")][..],
        &[("TILEWRIGHT_THREADS", "1"), ("TILEWRIGHT_VERIFY", "1")],
        &[("TILEWRIGHT_THREADS", "1"), ("TILEWRIGHT_CPU_FEATURES", "-avx512f,-fma,-avx")],
        &[("TILEWRIGHT_THREADS", "1"), ("TILEWRIGHT_RECORDS", "tests/records")],
        &[("TILEWRIGHT_THREADS", "1"), ("TILEWRIGHT_RECORDS", "")],
        &[("TILEWRIGHT_THREADS", "1"), ("TILEWRIGHT_BACKGROUND", "0")],
    ] {
        let (stdout, stderr) = run(variables);
        assert!(stdout.contains("y[99] = 198, 1 threads"), "{variables:?}: {stdout}{stderr}");
    }
}

#[test]
fn bad_settings_are_errors_that_name_the_variable() {
    for (variable, value, problem) in [
        ("TILEWRIGHT_THREADS", "many", "expected a number of threads"),
        ("TILEWRIGHT_THREADS", "0", "expected a number of threads"),
        ("TILEWRIGHT_VERIFY", "perhaps", "expected 0 or 1"),
        (
            "TILEWRIGHT_DUMP",
            "shceduled",
            "`shceduled` is no stage; expected `all` or some of definition, bound",
        ),
        ("TILEWRIGHT_CPU_FEATURES", "+amx", "must be a feature to leave unused"),
        ("TILEWRIGHT_BACKGROUND", "off", "expected 0 or 1"),
        ("TILEWRIGHT_RECORDS", "Cargo.toml", "Cargo.toml"),
        ("TILEWRIGHT_RECORDS", "tests/there/is/nothing", "there is no such directory or file"),
    ] {
        let (stdout, _) = run(&[(variable, value)]);
        assert!(stdout.contains("error: ") && stdout.contains(problem), "{variable}={value}: {stdout}");
    }
}

#[test]
fn stages_are_printed_on_request() {
    let (_, stderr) = run(&[("TILEWRIGHT_DUMP", "scheduled,assembly")]);
    assert!(stderr.contains("// twice (N=100): scheduled\nkernel twice("), "{stderr}");
    assert!(stderr.contains("// twice (N=100): assembly"), "{stderr}");
    assert!(!stderr.contains(": flatten_buffers"), "{stderr}");
    let (_, stderr) = run(&[("TILEWRIGHT_DUMP", "all")]);
    for stage in ["definition", "bound", "trace", "scheduled", "flatten_buffers", "flat", "assembly"] {
        assert!(stderr.contains(&format!("): {stage}\n")), "{stage}: {stderr}");
    }
}
