//! Each command on a small file of records.

mod common;
#[path = "common/records.rs"]
mod recorded;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{failure, text, tilewright};
use recorded::{write_record_of_this_machine, write_records};
use tempfile::{TempDir, tempdir};

/// A directory with records in `tuned`.
fn records() -> TempDir {
    let directory = tempdir().expect("a directory");
    write_records(&directory.path().join("tuned"));
    directory
}

/// Compares a text with a golden file; `BLESS=1` writes it.
fn assert_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, found).expect("the golden files can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "{name} differs; BLESS=1 accepts:\n{found}");
}

const SHAPE: &str = "M=24,N=24,K=16";

#[test]
fn list_tells_the_best_of_each() {
    let directory = records();
    let list = text(directory.path(), &["list"]);
    let line = |start: &str| {
        let line =
            list.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {list}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let best = line("product[K=16, M=24, N=24]");
    assert!(best.contains("1 2.10 µs 5.0 % yes 9.1 23 % 4 1"), "{best}");
    // Nobody has said the operations of this one.
    assert!(line("softmax").contains("800 ns 5.0 % no – – 6 0"), "{list}");
    let json = text(directory.path(), &["list", "--json", "tuned/product.jsonl"]);
    let entries: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(entries.as_array().map(Vec::len), Some(2), "{json}");
    assert_eq!(entries[0]["best_ns"], 2100.0);
    assert!(entries[0]["default_ns"].as_f64().is_some_and(|ns| (ns - 4100.0).abs() < 1e-6), "{json}");
    assert_eq!(entries[1]["confirmed"], false);
}

#[test]
fn show_gives_the_trace_and_the_program_before_and_after() {
    let directory = records();
    assert_golden("show.txt", &text(directory.path(), &["show", "tuned", "product", SHAPE]));
    let failed = text(directory.path(), &["show", "tuned", "product", SHAPE, "--trial", "1"]);
    assert!(
        failed.contains("  failed: crash: it <died>\n") && failed.contains("\nparallel %1\n"),
        "{failed}"
    );
    let without = text(directory.path(), &["show", "tuned", "softmax"]);
    assert!(without.contains("has no text of the program 0000000000000007 of `softmax`"), "{without}");
    let code = text(directory.path(), &["show", "tuned", "product", SHAPE, "--lowered", "--assembly"]);
    assert!(
        code.contains("\ncompiled program:\nkernel product(") && code.contains("\nmachine code, "),
        "{code}"
    );
}

#[test]
fn replay_checks_and_times() {
    let directory = records();
    let replayed = text(directory.path(), &["replay", "tuned", "product", SHAPE]);
    assert!(replayed.contains("replayed: the results are right"), "{replayed}");
    assert!(replayed.contains("the unscheduled program, interpreted"), "{replayed}");
    assert!(replayed.contains("recorded 2.10 µs, now "), "{replayed}");
    let refused = failure(directory.path(), &["replay", "tuned", "softmax"], 1);
    assert!(refused.contains("has no text of the program"), "{refused}");
    // Whatever a trace says: it replays on this program, or it is refused.
    let path = directory.path().join("tuned/product.jsonl");
    let hostile = fs::read_to_string(&path).expect("a text").replace("[%6, %3, %7]", "[%6, %6, %7]");
    fs::write(&path, hostile).expect("a disk");
    let refused = failure(directory.path(), &["replay", "tuned", "product", SHAPE], 1);
    assert!(refused.contains("was not repeated: the trace does not replay: step "), "{refused}");
}

#[test]
fn diff_tells_decisions_steps_and_programs_apart() {
    let directory = records();
    let address = |trial: u64| format!("tuned:product:{SHAPE}#{trial}");
    let arguments = |a, b| [address(a), address(b)];
    let [a, b] = arguments(2, 3);
    assert_golden("diff.txt", &text(directory.path(), &["diff", &a, &b, "--program"]));
    let [a, b] = arguments(0, 3);
    let steps = text(directory.path(), &["diff", &a, &b]);
    assert!(steps.contains("B takes 0.53 × the time of A"), "{steps}");
    assert!(steps.contains("  + reorder [%6, %3, %7]\n  - vectorize %2\n  + vectorize %7\n"), "{steps}");
    let same = text(directory.path(), &["diff", &b, &b, "--program"]);
    assert!(
        same.contains("the traces are equal") && same.contains("the scheduled programs are equal"),
        "{same}"
    );
}

#[test]
fn merge_and_prune_lose_nothing_that_is_wanted() {
    let directory = records();
    let path = directory.path();
    let later = r#"{"version":1,"kind":"energy","kernel":"product","joules":3}"#;
    let file = path.join("tuned/product.jsonl");
    let whole = fs::read_to_string(&file).expect("a text");
    fs::write(&file, format!("{whole}{later}\n")).expect("a disk");
    let merged = tilewright(path, &["merge", "all.jsonl", "tuned/softmax.jsonl", "tuned"]);
    let said = String::from_utf8_lossy(&merged.stdout);
    let expected = "added 7 records, 1 program, 1 tuning run, 1 line of a later version to `all.jsonl`, which has 7 records\n";
    assert_eq!(said, expected, "{}", String::from_utf8_lossy(&merged.stderr));
    let warned = String::from_utf8_lossy(&merged.stderr);
    assert!(warned.contains("product.jsonl:9: a line of the kind `energy`"), "{warned}");
    let again = tilewright(path, &["merge", "all.jsonl", "tuned"]);
    assert_eq!(
        String::from_utf8_lossy(&again.stdout),
        "added 0 records to `all.jsonl`, which has 7 records\n"
    );
    let pruned = tilewright(path, &["prune", "all.jsonl"]);
    assert_eq!(
        String::from_utf8_lossy(&pruned.stdout),
        "dropped 4 records of `all.jsonl`, which has 3 records\n"
    );
    let left = fs::read_to_string(path.join("all.jsonl")).expect("a text");
    assert!(left.contains(later) && left.contains(r#""kind":"program""#) && left.contains(r#""kind":"run""#));
    let shown = tilewright(path, &["show", "all.jsonl", "product", SHAPE]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("2.10 µs ± 5.0 %, confirmed"));
}

#[test]
fn a_report_is_one_page_and_always_the_same() {
    let directory = records();
    let page = |name: &str| {
        text(directory.path(), &["report", "tuned", "--output", name]);
        fs::read_to_string(directory.path().join(name)).expect("a page")
    };
    let found = page("report.html");
    assert_golden("report.html", &found);
    assert_eq!(found, page("deeper/report.html"));
    assert!(!found.contains("http") && !found.contains("<script") && found.contains("A &lt;fast&gt; CPU"));
}

#[test]
fn of_several_machines_this_one_is_meant() {
    let directory = records();
    write_record_of_this_machine(&directory.path().join("tuned"), 1230.0);
    let shown =
        |more: &[&str]| text(directory.path(), &[&["show", "tuned", "product", SHAPE], more].concat());
    assert!(shown(&[]).contains("1.23 µs"), "{}", shown(&[]));
    assert!(shown(&["--threads", "1"]).contains("2.10 µs"), "{}", shown(&["--threads", "1"]));
}

#[test]
fn failures_say_what_there_is() {
    let directory = records();
    let path = directory.path();
    let fails = |arguments: &[&str], code, expected: &str| {
        let found = failure(path, arguments, code);
        assert!(found.contains(expected), "{arguments:?}: {found}");
    };
    fails(&["show", "tuned", "prodct"], 1, "no kernel `prodct` in `tuned`; there are: product | softmax");
    fails(
        &["show", "tuned", "product"],
        1,
        "has records of `product` for several shapes; name one\n  K=16, M=24, N=24",
    );
    fails(
        &["show", "tuned", "product", "M=1"],
        1,
        "no record of `product` for M=1 in `tuned`; there are: K=16, M=24",
    );
    fails(
        &["show", "tuned", "product", SHAPE, "--trial", "77"],
        1,
        "no such record in `tuned`; there are: cpu;threads=1",
    );
    fails(&["show", "nowhere", "product"], 1, "cannot read `nowhere`");
    fails(&["list", "Cargo.toml"], 1, "cannot read `Cargo.toml`");
    fails(&["merge", "out", "nowhere"], 1, "cannot read `nowhere`");
    fails(
        &["report", "tuned", "-o", "tuned/product.jsonl/x.html"],
        1,
        "cannot write `tuned/product.jsonl/x.html`",
    );
    fails(&["show", "tuned", "product", "M"], 2, "the form is `M=128,N=64`");
    fails(&["diff", "tuned", "tuned:product"], 2, "the form is `PATH:KERNEL:SHAPE#TRIAL`");
    fails(&["prune", "tuned", "--keep", "0"], 2, "invalid value '0'");
    fails(&["tune"], 2, "unrecognized subcommand");
    assert!(!path.join("out").exists(), "nothing is made when there is nothing to merge");
    fs::write(path.join("notes.txt"), "no records").expect("a disk");
    fails(&["list", "notes.txt"], 1, "its name must end in `.jsonl`");
    fs::create_dir(path.join("empty")).expect("a disk");
    fails(&["report", "empty"], 1, "there are no records");
    assert_eq!(text(path, &["list", "empty"]), "no records\n");
}

#[test]
fn broken_lines_are_told_and_skipped() {
    let directory = records();
    let file = directory.path().join("tuned/product.jsonl");
    let mut content = fs::read(&file).expect("a text");
    content.extend(b"{\"version\":1,\xff\n[[[[\n{\"version\":1,\"kind\":\"run\"}\n");
    fs::write(&file, content).expect("a disk");
    let output = tilewright(directory.path(), &["list"]);
    let warned = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && warned.matches("warning: tuned/product.jsonl:").count() == 3,
        "{warned}"
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("product[K=16, M=24, N=24]"));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let directory = records();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(["show", "tuned", "product", SHAPE])
        .current_dir(directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
