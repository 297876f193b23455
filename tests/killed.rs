//! The tuner is killed at random moments: no record is lost, none is corrupt, the next run goes on where the last one ended,
//! and no measuring process stays behind.
//!
//! `TILEWRIGHT_KILLS=100 cargo test --test killed` kills it a hundred times; `TILEWRIGHT_SEED` draws other moments.

#[cfg(target_os = "linux")]
use {
    rand::rngs::StdRng,
    rand::{RngExt, SeedableRng},
    std::collections::{BTreeSet, HashSet},
    std::io::{BufRead, BufReader},
    std::path::PathBuf,
    std::process::{Child, Command, Stdio},
    std::sync::mpsc,
    std::time::{Duration, Instant},
    tilewright::search::records::{Database, Record},
};

use std::ffi::OsStr;
use std::io::Write;

use tilewright::prelude::*;
use tilewright::tuning::{Observer, Progress, Started, Tuner};

/// The environment variable that says where the program which is killed leaves its records.
const RECORDS: &str = "TILEWRIGHT_TEST_RECORDS";

/// Measurements until the program ends by itself, those of the runs before included.
const TRIALS: usize = 24;

/// C = A·B
#[tensor_kernel]
fn product(a: &Tensor<f32, M, K>, b: &Tensor<f32, K, N>) -> Tensor<f32, M, N> {
    let mut c = Tensor::zeros();
    for i in 0..M {
        for j in 0..N {
            for k in 0..K {
                c[[i, j]] += a[[i, k]] * b[[k, j]];
            }
        }
    }
    c
}

fn main() {
    tilewright::init();
    if let Some(records) = std::env::var_os(RECORDS) {
        return tune(&records);
    }
    #[cfg(target_os = "linux")]
    kill_again_and_again();
}

/// The program that is killed: it tunes, and prints a line after each measurement.
fn tune(records: &OsStr) {
    let mut tuner = Tuner::new().trials(TRIALS).threads(1).records(records).observer(Speaker);
    match tuner.tune(product::kernel(), &[("M", 24), ("N", 16), ("K", 12)]) {
        Ok(tuned) => say(&format!("done {}", tuned.earlier_trials + tuned.trials)),
        Err(error) => panic!("{error}"),
    }
}

struct Speaker;

impl Observer for Speaker {
    fn started(&mut self, started: &Started<'_>) {
        say(&format!("earlier {}", started.earlier));
    }

    fn measured(&mut self, _: &Progress<'_>) {
        say("recorded");
    }
}

fn say(line: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}").and_then(|()| output.flush()).expect("somebody listens");
}

/// When a run is killed.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug)]
enum Moment {
    Never,
    /// So long after it was started.
    Start(Duration),
    /// So long after it has said for the n-th time that something was recorded.
    Record(usize, Duration),
}

/// The outcome of a run.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
struct Run {
    /// The records that it has found.
    earlier: Option<usize>,
    /// How many it has said to have written.
    recorded: usize,
    /// The number of records at its end.
    done: Option<usize>,
}

#[cfg(target_os = "linux")]
impl Run {
    fn until(moment: Moment, place: &Place) -> Run {
        let mut child = place.start();
        let lines = lines_of(&mut child);
        let mut run = Run::default();
        let mut deadline = match moment {
            Moment::Start(delay) => Some(Instant::now() + delay),
            Moment::Never | Moment::Record(..) => None,
        };
        loop {
            let heard = match deadline {
                Some(deadline) => lines.recv_timeout(deadline.saturating_duration_since(Instant::now())),
                None => lines.recv().map_err(mpsc::RecvTimeoutError::from),
            };
            match heard {
                Ok(line) => run.hear(&line),
                Err(mpsc::RecvTimeoutError::Timeout) => break,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = child.wait().expect("it was started");
                    assert!(status.success(), "it ended by itself, with {status}");
                    return run;
                }
            }
            if let (Moment::Record(number, delay), None) = (moment, deadline)
                && run.recorded >= number
            {
                deadline = Some(Instant::now() + delay);
            }
        }
        child.kill().expect("it was started");
        child.wait().expect("it was started");
        lines.iter().for_each(|line| run.hear(&line));
        run
    }

    fn hear(&mut self, line: &str) {
        let number = || line.rsplit(' ').next().and_then(|word| word.parse().ok());
        match line.split(' ').next() {
            Some("earlier") => self.earlier = number(),
            Some("recorded") => self.recorded += 1,
            Some("done") => self.done = number(),
            _ => panic!("it says `{line}`"),
        }
    }
}

/// The number of a record's trial, and what was tried.
#[cfg(target_os = "linux")]
fn trial(record: &Record) -> (u64, String) {
    (record.provenance.trial, record.trace.to_string())
}

/// The whole lines that a program prints, until it ends.
#[cfg(target_os = "linux")]
fn lines_of(child: &mut Child) -> mpsc::Receiver<String> {
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8(line).expect("it prints text");
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// Where runs leave their records, and what is there.
#[cfg(target_os = "linux")]
struct Place {
    directory: tempfile::TempDir,
    content: Vec<u8>,
    records: usize,
    /// The lines that are no records.
    torn: usize,
}

#[cfg(target_os = "linux")]
impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Place { directory, content: Vec::new(), records: 0, torn: 0 }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("records.jsonl")
    }

    fn start(&self) -> Child {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        // A killed process leaves its temporary files behind, in this directory.
        command.env(RECORDS, self.file()).env("TMPDIR", self.directory.path()).stdout(Stdio::piped());
        command.spawn().expect("this program again")
    }

    /// The directories for intermediate results that runs have left.
    fn left_directories(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.path()).expect("it is there").flatten();
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).count()
    }

    /// Checks what a run has left.
    fn check(&mut self, run: &Run) {
        self.check_that_nothing_runs();
        // That of a run which was killed is for the next one to remove.
        let left = self.left_directories();
        assert!(left <= usize::from(run.done.is_none()), "{left} temporary directories are left: {run:?}");
        assert!(run.earlier.is_none_or(|earlier| earlier == self.records), "it found others: {run:?}");
        let content = std::fs::read(self.file()).unwrap_or_default();
        assert!(content.starts_with(&self.content), "what was there has changed");
        let database = Database::open(self.file()).expect("the file can be read");
        // The best are timed once more at the end of a run, under the numbers of their trials.
        let trials: BTreeSet<(u64, String)> = database.records().map(trial).collect();
        assert!(
            trials.iter().map(|trial| trial.0).eq(0..trials.len() as u64),
            "trial numbers go on: {run:?}"
        );
        let traces: HashSet<&str> = trials.iter().map(|trial| trial.1.as_str()).collect();
        assert_eq!(traces.len(), trials.len(), "a candidate was measured twice");
        let new = trials.len() - self.records;
        let unsaid = usize::from(run.done.is_none());
        assert!((run.recorded..=run.recorded + unsaid).contains(&new), "{new} records are new: {run:?}");
        // A line that was being written may be cut off. It is the last one, and the next run ends it.
        let problems = database.problems();
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        assert!(problems.len() <= self.torn + 1, "{problems:?}");
        assert!(problems.len() == self.torn || problems.last().is_some_and(|last| last.line == lines));
        (self.records, self.torn, self.content) = (trials.len(), problems.len(), content);
    }

    /// Waits for the measuring processes to end.
    fn check_that_nothing_runs(&self) {
        const PATIENCE: Duration = Duration::from_secs(10);
        let mark = self.file().into_os_string().into_encoded_bytes();
        let is_marked = |process: &PathBuf| {
            let environment = std::fs::read(process.join("environ")).unwrap_or_default();
            environment.windows(mark.len()).any(|part| part == mark)
        };
        let start = Instant::now();
        loop {
            let processes = std::fs::read_dir("/proc").expect("there are processes");
            let left: Vec<PathBuf> =
                processes.flatten().map(|entry| entry.path()).filter(is_marked).collect();
            if left.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "measuring processes outlive their tuner: {left:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(target_os = "linux")]
fn kill_again_and_again() {
    let setting = |name| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let (kills, seed) = (setting("TILEWRIGHT_KILLS").unwrap_or(6), setting("TILEWRIGHT_SEED").unwrap_or(1));
    println!("killing the tuner {kills} times, seed {seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let mut place = Place::new();
    let start = Instant::now();
    let whole = Run::until(Moment::Never, &place);
    let longest = start.elapsed();
    assert_eq!((whole.earlier, whole.recorded, whole.done), (Some(0), TRIALS, Some(TRIALS)));
    place.check(&whole);
    let (mut killed, mut completed, mut torn) = (0, 0, 0);
    place = Place::new();
    while killed < kills || place.records > 0 {
        let moment = match (killed < kills, rng.random_bool(0.5)) {
            (false, _) => Moment::Never,
            (true, false) => Moment::Start(longest.mul_f64(rng.random_range(0.0..1.0))),
            (true, true) => {
                let delay = Duration::from_micros(rng.random_range(0..30_000));
                Moment::Record(rng.random_range(1..=TRIALS / 4), delay)
            }
        };
        let run = Run::until(moment, &place);
        place.check(&run);
        match run.done {
            None => killed += 1,
            Some(all) => {
                assert_eq!((all, place.records), (TRIALS, TRIALS), "the budget is spent");
                completed += 1;
                torn += place.torn;
                place = Place::new();
            }
        }
    }
    println!("{killed} kills, {completed} times tuned to the end, {torn} lines cut off");
}
