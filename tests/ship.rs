//! Records that are embedded when the program is built.

tilewright::ship!("tests/records/");

#[test]
fn shipped_records_are_known_without_any_call_or_file() {
    let problems = tilewright::record_problems().expect("nothing in the environment");
    let stale: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(stale.len(), 1, "{stale:?}");
    assert!(
        stale[0].starts_with("tests/records/:1: no kernel `retired`"),
        "the kernel of the record is gone, and this is reported: {stale:?}"
    );
}
