//! The tuner's side of measuring in another process: starting it, watching it, blaming candidates for its death.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{MARK, Reply, Request, Setup};

/// How many of the last lines that a measuring process wrote to its standard error are kept.
const KEPT_LINES: usize = 12;

/// How often a waiting tuner looks whether it was asked to stop.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long the standard error of a process that has ended is waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A measuring process.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    replies: mpsc::Receiver<Received>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Disconnected once the standard error has been read to its end.
    errors_end: mpsc::Receiver<()>,
}

/// What came from the process.
enum Received {
    Reply(Reply),
    /// A line that is marked as a reply and is none.
    Garbage(String),
}

/// What there is to know when waiting for a reply ends.
pub(crate) enum Heard {
    /// A reply.
    Reply(Reply),
    /// Nothing by the deadline.
    TimedOut,
    /// The process has died.
    Died(Death),
    /// It has said something that cannot be understood.
    Garbage(String),
}

/// How a process died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Death {
    /// Its status, as the system words it.
    pub(crate) status: String,
    /// The last lines that it wrote to its standard error.
    pub(crate) errors: String,
}

impl Death {
    /// Whether it died because it could not have more memory.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        // What the Rust runtime prints when an allocation that cannot fail does.
        self.errors.contains("memory allocation of") || self.errors.contains("Cannot allocate memory")
    }
}

impl std::fmt::Display for Death {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.status)?;
        if !self.errors.is_empty() {
            write!(f, ": {}", self.errors)?;
        }
        Ok(())
    }
}

impl Process {
    /// Starts a measuring process by a command and tells it what to measure.
    pub(crate) fn start(mut command: Command, setup: &Setup) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // The last lines on the standard error are shown to people: the message, not the way to it.
        command.env("RUST_BACKTRACE", "0");
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl-C is for the tuner, which ends the measurement in its own way.
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let (Some(input), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three are piped");
        };
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, replies) = mpsc::channel();
        let (reading, errors_end) = mpsc::channel();
        std::thread::spawn({
            let kept = Arc::clone(&kept);
            move || {
                keep_last_lines(BufReader::new(errors), &kept);
                drop(reading);
            }
        });
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // Anything else was printed by the program before `init`, and is not for us.
                let Some((_, text)) = line.split_once(MARK) else { continue };
                let received = match serde_json::from_str(text) {
                    Ok(reply) => Received::Reply(reply),
                    Err(error) => Received::Garbage(format!("{error}: {text}")),
                };
                if sender.send(received).is_err() {
                    break;
                }
            }
        });
        let mut process = Process { child, input, replies, errors: kept, errors_end };
        process.send(&Request::Setup(setup.clone()));
        Ok(process)
    }

    /// Sends a request. When the process is gone, waiting for its reply will tell.
    pub(crate) fn send(&mut self, request: &Request) {
        let text = serde_json::to_string(request).expect("requests are numbers and texts");
        let sent = writeln!(self.input, "{text}").and_then(|()| self.input.flush());
        if let Err(error) = sent {
            tracing::debug!(%error, "the measuring process does not listen");
        }
    }

    /// Waits for the next reply until a deadline. `idle` is called many times a second meanwhile.
    pub(crate) fn hear(&mut self, deadline: Option<Instant>, idle: &mut dyn FnMut(&mut Self)) -> Heard {
        loop {
            let wait = deadline.map_or(PATIENCE, |deadline| {
                deadline.saturating_duration_since(Instant::now()).min(PATIENCE)
            });
            match self.replies.recv_timeout(wait) {
                Ok(Received::Reply(reply)) => return Heard::Reply(reply),
                Ok(Received::Garbage(text)) => return Heard::Garbage(text),
                Err(RecvTimeoutError::Disconnected) => return Heard::Died(self.end()),
                Err(RecvTimeoutError::Timeout) => {
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Heard::TimedOut;
                    }
                    idle(self);
                }
            }
        }
    }

    /// Ends the process, if it has not ended, and says how it died.
    pub(crate) fn end(&mut self) -> Death {
        // A process that has closed its output is about to end: its own status says more than ours.
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if start.elapsed() < Duration::from_millis(500) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => break None,
            }
        };
        let status = status.map_or_else(|| "it was ended".to_owned(), describe);
        self.kill();
        // The last words tell memory from other deaths. A process of its own may keep the pipe open for longer.
        let _ = self.errors_end.recv_timeout(LAST_WORDS);
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let errors = errors.iter().map(String::as_str).collect::<Vec<_>>().join(" | ");
        Death { status, errors }
    }

    /// Ends the process at once.
    pub(crate) fn kill(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn keep_last_lines(reader: impl BufRead, kept: &Mutex<VecDeque<String>>) {
    for line in reader.lines().map_while(Result::ok) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
}

fn describe(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        if let Some(signal) = status.signal() {
            return format!("the measuring process was ended by signal {signal}");
        }
    }
    format!("the measuring process ended with {status}")
}

/// The most memory that a measuring process may use: most of the machine's, so that a candidate which wants too
/// much fails instead of making the machine swap.
pub fn memory_limit() -> u64 {
    /// Where the machine does not tell, what a small one has.
    const FALLBACK_BYTES: u64 = 8 << 30;
    let information = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = information.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    total.unwrap_or(FALLBACK_BYTES) / 4 * 3
}
