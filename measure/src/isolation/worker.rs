//! The measuring process: the same program, started again, in which candidates run.
//!
//! A candidate that crashes, hangs or takes all memory ends this process and nothing else. It reads requests from
//! its standard input and replies on its standard output, see [`protocol`](super::protocol), and it
//! ends when its input ends, so that it never outlives the tuner.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

use tilewright_core::device::Device;
use tilewright_core::program::Program;
use tilewright_core::verify::{Level, verify};
use tilewright_runtime::Error;
use tilewright_runtime::devices;
use tilewright_runtime::kernel::{Kernel, kernel};
use tilewright_search::records::CacheState;

use super::protocol::{MARK, Reply, Request, Setup, Source};
use crate::batch::Measuring;
use crate::subject::{Subject, SubjectOptions};

/// The environment variable that marks a measuring process, with any value.
pub const VARIABLE: &str = "TILEWRIGHT_WORKER";

/// Whether [`init`] has been called.
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

/// Lets this program measure candidates in processes of their own.
///
/// Call it first in `main`. The tuner starts a program that tunes again, as its measuring process; in
/// that process this function measures, and does not return. Without it, candidates run in the tuning process
/// itself, where a candidate that crashes ends the program. `bench_main!` calls it.
pub fn init() {
    if std::env::var_os(VARIABLE).is_none() {
        IS_INITIALISED.store(true, Ordering::Relaxed);
        return;
    }
    // A measuring process must not start measuring processes itself.
    serve(&|name| devices::device(devices::find(name)?));
    std::process::exit(0)
}

/// Whether a measuring process of this program can be started.
pub fn is_initialised() -> bool {
    IS_INITIALISED.load(Ordering::Relaxed)
}

/// The command that starts this program again, as its measuring process.
pub fn command() -> std::io::Result<std::process::Command> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.env(VARIABLE, "1");
    Ok(command)
}

/// Opens the device with a name.
pub type OpenDevice<'o> = dyn Fn(&str) -> Result<Arc<dyn Device>, Error> + 'o;

/// Carries out requests from the standard input until it ends.
pub fn serve(open: &OpenDevice<'_>) {
    let finish = Arc::new(AtomicU64::new(0));
    let requests = read_requests(Arc::clone(&finish));
    // Other code that prints, such as the definition's own, waits; the protocol's lines stay whole.
    let mut output = std::io::stdout().lock();
    // The program may have printed something without an end of line.
    drop(output.write_all(b"\n"));
    let mut emit = |reply: Reply| send(&mut output, &reply);
    let mut subject: Option<Subject> = None;
    for request in requests {
        let request = match request {
            Ok(request) => request,
            Err(message) => return emit(Reply::Error(message)),
        };
        let (number, subject) = match (&request, &subject) {
            (Request::Setup(setup), _) => {
                match prepare(setup, open) {
                    Ok(prepared) => {
                        let reference_seconds = prepared.reference_time().as_secs_f64();
                        emit(Reply::Ready { reference_seconds });
                        subject = Some(prepared);
                    }
                    Err(message) => return emit(Reply::Error(message)),
                }
                continue;
            }
            (Request::Finish { .. }, _) => continue,
            (Request::Measure { number, .. } | Request::Compare { number, .. }, Some(subject)) => {
                (*number, subject)
            }
            _ => return emit(Reply::Error("asked to measure before anything was set up".to_owned())),
        };
        let should_stop = || finish.load(Ordering::Relaxed) >= number;
        let mut measuring = Measuring { subject, emit: &mut emit, should_stop: &should_stop };
        match request {
            Request::Measure { traces, anchors, .. } => measuring.measure(traces, &anchors),
            Request::Compare { first, second, .. } => measuring.compare(first, second),
            Request::Setup(_) | Request::Finish { .. } => unreachable!("dealt with above"),
        }
        emit(Reply::Done);
    }
}

/// Reads requests on a thread of its own, so that it sees `Finish` and the end of the input at once. When the input
/// ends, nobody needs the process any longer, even if a candidate hangs.
fn read_requests(finish: Arc<AtomicU64>) -> mpsc::Receiver<Result<Request, String>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let request = line.map_err(|error| error.to_string()).and_then(|line| {
                serde_json::from_str(&line).map_err(|error| format!("no request: {error}: {line}"))
            });
            if let Ok(Request::Finish { number }) = &request {
                finish.fetch_max(*number, Ordering::Relaxed);
            }
            if sender.send(request).is_err() {
                break;
            }
        }
        std::process::exit(0)
    });
    receiver
}

fn send(output: &mut impl Write, reply: &Reply) {
    let text = serde_json::to_string(reply).expect("replies are numbers and texts");
    let sent = writeln!(output, "{MARK}{text}").and_then(|()| output.flush());
    if sent.is_err() {
        // Nobody reads any longer.
        std::process::exit(0);
    }
}

fn prepare(setup: &Setup, open: &OpenDevice<'_>) -> Result<Subject, String> {
    limit_memory(setup.memory);
    let options = SubjectOptions { seed: setup.seed, threads: setup.threads, cache: setup.cache.clone() };
    let device = open(&setup.device).map_err(|error| error.to_string())?;
    let subject = match &setup.of {
        Source::Kernel { kernel, program, dims } => {
            let found = find(kernel, program)?;
            let named: Vec<(&str, i64)> = dims.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            let dims = found.dims_by_name(&named).map_err(|error| error.to_string())?;
            Subject::new(found, &dims, device, &options).map_err(|error| error.to_string())
        }
        Source::Program { text, oracle } => {
            let program: Program = text.parse().map_err(|error| format!("{error}"))?;
            verify(&program, Level::Blocks).map_err(|errors| errors.render(&program))?;
            oracle.subject(program, device, &options).map_err(|error| error.to_string())
        }
    };
    let mut subject = subject?;
    subject.set_cache(if setup.cold { CacheState::Cold } else { CacheState::Warm });
    Ok(subject)
}

fn find(name: &str, program: &str) -> Result<&'static Kernel, String> {
    let found = kernel(name).map_err(|error| error.to_string())?;
    let hash = found.hash().map_err(|error| error.to_string())?;
    if format!("{hash:016x}") != program {
        return Err(format!("`{name}` has another definition here; was the program rebuilt meanwhile?"));
    }
    Ok(found)
}

/// Makes allocations fail before the machine swaps. Where the system has no such limit, there is none.
fn limit_memory(bytes: u64) {
    #[cfg(unix)]
    if let Err(error) = rlimit::setrlimit(rlimit::Resource::AS, bytes, bytes) {
        tracing::debug!(%error, "the measuring process has no limit of its memory");
    }
    #[cfg(not(unix))]
    tracing::debug!(bytes, "the measuring process has no limit of its memory");
}
