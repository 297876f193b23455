//! MetaSchedule's features of scheduled programs, compared with ours of the same programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tilewright_core::program::Program;
use tilewright_core::schedule::Trace;
use tilewright_core::target::{CpuTarget, RunContext};
use tilewright_search::cpu::features::{BlockFeatures, Value, describe, extract};

/// Numbers by name.
type Numbers = BTreeMap<String, f64>;

/// MetaSchedule's features of a store.
struct Store {
    name: String,
    own: Numbers,
    buffers: Vec<Numbers>,
}

/// A data file.
struct Case {
    program: Program,
    trace: Trace,
    /// Features that hold exactly here, of those that need not.
    exact: BTreeSet<String>,
    stores: Vec<Store>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance")
}

/// The data files, by program.
fn cases() -> BTreeMap<String, Case> {
    let entries = fs::read_dir(folder().join("features")).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("it is readable").path());
    paths
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, Case::read(&fs::read_to_string(&path).expect("it is text")))
        })
        .collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

/// The text before the colon; a reason must follow it.
fn before_reason(line: &str) -> &str {
    let (before, reason) = line.split_once(": ").unwrap_or_else(|| panic!("a reason is missing: {line}"));
    assert!(!reason.trim().is_empty(), "a reason is missing: {line}");
    before
}

impl Case {
    fn read(text: &str) -> Self {
        let (head, rest) = text.split_once("\nprogram\n").expect("a line `program`");
        let (program, rest) = rest.split_once("\ntrace v1\n").expect("a line `trace v1`");
        let (steps, stores) = rest.split_once("\nstores\n").expect("a line `stores`");
        let program = program.parse().unwrap_or_else(|error| panic!("{error}"));
        let trace = format!("trace v1\n{steps}\n").parse().unwrap_or_else(|error| panic!("{error}"));
        let exact = head.lines().filter_map(|line| line.strip_prefix("exact "));
        let exact = exact.flat_map(|line| line.split(", ")).map(str::to_owned).collect();
        let mut stores: Vec<Store> = stores.split("\nstore ").skip(1).map(Store::read).collect();
        for line in head.lines().filter_map(|line| line.strip_prefix("differs ")) {
            let [store, name, ours] = before_reason(line).split(' ').collect::<Vec<_>>()[..] else {
                panic!("`differs STORE NAME OURS: REASON`, not {line}");
            };
            let store = stores.iter_mut().find(|known| known.name == store).expect("the store is there");
            store.replace(name, number(ours));
        }
        Case { program, trace, exact, stores }
    }
}

impl Store {
    fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let name = lines.next().expect("a name").to_owned();
        let (mut own, mut buffers) = (Numbers::new(), Vec::new());
        for line in lines.take_while(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split(' ').collect();
            let values =
                words[1..].chunks(2).map(|pair| (format!("{}.{}", words[0], pair[0]), number(pair[1])));
            if words[0] == "buffer" { buffers.push(values.collect()) } else { own.extend(values) }
        }
        Store { name, own, buffers }
    }

    /// Puts our value in place of MetaSchedule's; `buffer2.stride` is that of the second buffer.
    fn replace(&mut self, name: &str, ours: f64) {
        let (group, value) = name.split_once('.').expect("a group and a name");
        let numbers = match group.strip_prefix("buffer") {
            Some(place) => &mut self.buffers[number(place) as usize - 1],
            None => &mut self.own,
        };
        let name = format!("{}.{value}", group.trim_end_matches(char::is_numeric));
        let before = numbers.insert(name, ours);
        assert_ne!(before.unwrap_or(0.0), ours, "`differs` without a difference");
    }
}

/// How our value of a feature compares with MetaSchedule's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Relation {
    Same,
    AtMost,
    AtLeast,
}

/// A feature that we keep.
struct Kept {
    relation: Relation,
    /// MetaSchedule's values, whose sum it is.
    theirs: Vec<String>,
    ours: String,
}

/// The table of features, and the names of all of MetaSchedule's.
fn table() -> (Vec<Kept>, BTreeSet<String>) {
    let text = fs::read_to_string(folder().join("features.txt")).expect("the table is there");
    let (_, rows) = text.split_once("\n\n").expect("an introduction and a table");
    let (mut kept, mut known) = (Vec::new(), BTreeSet::new());
    for line in rows.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').expect("a word and more");
        let relation = match word {
            "same" => Some(Relation::Same),
            "at_most" => Some(Relation::AtMost),
            "at_least" => Some(Relation::AtLeast),
            "differs" | "absent" => None,
            other => panic!("`{other}` is no word of the format"),
        };
        let is_explained = relation == Some(Relation::Same);
        let rest = if is_explained { rest.split(": ").next().expect("a part") } else { before_reason(rest) };
        let theirs: Vec<String> = match relation {
            Some(_) => rest.split(" = ").next().expect("a part").split(" + ").map(str::to_owned).collect(),
            None => rest.split(", ").map(str::to_owned).collect(),
        };
        known.extend(theirs.iter().cloned());
        if let Some(relation) = relation {
            let ours = rest.split(" = ").nth(1).expect("a name of ours").to_owned();
            kept.push(Kept { relation, theirs, ours });
        }
    }
    (kept, known)
}

impl Kept {
    fn is_of_buffers(&self) -> bool {
        self.theirs[0].starts_with("buffer.")
    }

    /// Says what is wrong with our value.
    fn check(&self, theirs: &Numbers, ours: &[Value], exact: &BTreeSet<String>) -> Result<(), String> {
        let wanted: f64 = self.theirs.iter().filter_map(|name| theirs.get(name)).sum();
        let named = ours.iter().find(|value| value.name == self.ours);
        let found = named.unwrap_or_else(|| panic!("there is no feature `{}`", self.ours));
        let wanted = if found.is_size { (wanted + 1.0).log2() } else { wanted };
        let found = f64::from(found.value);
        // Ours are floats of 32 bits.
        let tolerance = 1e-6 * wanted.abs().max(1.0);
        let holds = match self.relation {
            _ if exact.contains(&self.ours) => (found - wanted).abs() <= tolerance,
            Relation::Same => (found - wanted).abs() <= tolerance,
            Relation::AtMost => found <= wanted + tolerance,
            Relation::AtLeast => found >= wanted - tolerance,
        };
        let what =
            || format!("{} is {found}, MetaSchedule's {} {wanted}", self.ours, self.theirs.join(" + "));
        if holds { Ok(()) } else { Err(what()) }
    }
}

/// Whether what we see of a block is what MetaSchedule sees of its store.
fn check(
    store: &Store,
    block: &BlockFeatures,
    kept: &[Kept],
    exact: &BTreeSet<String>,
) -> Result<(), String> {
    for feature in kept.iter().filter(|feature| !feature.is_of_buffers()) {
        feature.check(&store.own, &block.own, exact)?;
    }
    let mut left: Vec<_> = block.buffers.iter().collect();
    for (number, theirs) in store.buffers.iter().enumerate() {
        let mut why = String::new();
        // MetaSchedule does not say which buffer it is.
        let found = left.iter().position(|(name, ours)| {
            let mut features = kept.iter().filter(|feature| feature.is_of_buffers());
            let outcome = features.try_for_each(|feature| feature.check(theirs, ours, exact));
            outcome.map_err(|problem| why += &format!("\n  not {name}: {problem}")).is_ok()
        });
        let found = found.ok_or_else(|| format!("buffer {} is none of ours:{why}", number + 1))?;
        left.remove(found);
    }
    if left.is_empty() { Ok(()) } else { Err(format!("{left:?} touched, too")) }
}

#[test]
fn features_are_those_of_metaschedule() {
    let (kept, _) = table();
    let context = RunContext::from(CpuTarget::generic());
    let mut problems = Vec::new();
    for (name, case) in cases() {
        let schedule = case.trace.replay(&case.program, &context, 0);
        let schedule = schedule.unwrap_or_else(|error| panic!("{name}: {error}"));
        let blocks = describe(schedule.program(), &CpuTarget::generic());
        assert_eq!(blocks.len(), case.stores.len(), "{name}");
        for (store, block) in case.stores.iter().zip(&blocks) {
            if let Err(problem) = check(store, block, &kept, &case.exact) {
                problems.push(format!("{name}, {}: {problem}", store.name));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_table_names_each_feature_of_metaschedule_once() {
    let (kept, known) = table();
    let cases = cases();
    let stores = || cases.values().flat_map(|case| &case.stores);
    let names =
        stores().flat_map(|store| store.own.keys().chain(store.buffers.iter().flat_map(|b| b.keys())));
    for name in names {
        assert!(known.contains(name), "{name} is not in the table");
    }
    let of_buffers = known.iter().filter(|name| name.starts_with("buffer.")).count();
    assert_eq!(known.len() - of_buffers + 5 * of_buffers, 164);
    for feature in &kept {
        let occurs = stores().any(|store| {
            let mut numbers = std::iter::once(&store.own).chain(&store.buffers);
            numbers.any(|numbers| feature.theirs.iter().any(|name| numbers.contains_key(name)))
        });
        assert!(occurs, "no program has {}", feature.ours);
        let is_exact = feature.relation == Relation::Same
            || cases.values().any(|case| case.exact.contains(&feature.ours));
        assert!(is_exact, "{} is nowhere compared exactly", feature.ours);
    }
}

#[test]
fn rows_hold_what_is_described() {
    let context = RunContext::from(CpuTarget::generic());
    for (name, case) in cases() {
        let schedule = case.trace.replay(&case.program, &context, 0);
        let schedule = schedule.unwrap_or_else(|error| panic!("{name}: {error}"));
        let rows = extract(schedule.program(), &context).unwrap_or_else(|error| panic!("{name}: {error}"));
        let blocks = describe(schedule.program(), &CpuTarget::generic());
        assert_eq!(rows.row_count(), blocks.len(), "{name}");
        for (row, block) in rows.rows().zip(&blocks) {
            let buffers = block.buffers.iter().flat_map(|(_, values)| values);
            let described: Vec<f32> = block.own.iter().chain(buffers).map(|value| value.value).collect();
            assert_eq!(row[..described.len()], described, "{name}");
            assert!(row[described.len()..].iter().all(|value| *value == 0.0), "{name}");
        }
    }
}
