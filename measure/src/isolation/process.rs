//! The tuner's side of measuring in another process: it starts the process, watches it, and attributes its death to a candidate.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::protocol::{MARK, Reply, Request, Setup};

/// The number of last lines on the standard error of a measuring process that are kept.
const KEPT_LINES: usize = 12;

/// How often a waiting tuner checks for an order to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The longest wait for the standard error of a process that has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(500);

/// A measuring process.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    replies: mpsc::Receiver<Received>,
    errors: Arc<Mutex<VecDeque<String>>>,
    /// Disconnected once the standard error has been read to its end.
    errors_end: mpsc::Receiver<()>,
}

/// A message from the process.
enum Received {
    Reply(Reply),
    /// A line that is marked as a reply and cannot be parsed.
    Garbage(String),
}

/// The result of waiting for a reply.
pub(crate) enum Awaited {
    /// A reply.
    Reply(Reply),
    /// Nothing by the deadline.
    TimedOut,
    /// The process has died.
    Died(Death),
    /// It has sent a message that cannot be parsed.
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
        // The Rust runtime prints this when an infallible allocation fails.
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
    /// Starts a measuring process by a command and sends it the setup.
    pub(crate) fn start(mut command: Command, setup: &Setup) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // People read the last lines of the standard error: they get the message without a backtrace.
        command.env("RUST_BACKTRACE", "0");
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            // Ctrl-C is for the tuner, which then ends the measurement itself.
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
                // The program printed anything else before `init`.
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

    /// Sends a request. When the process is gone, the wait for its reply reports that.
    pub(crate) fn send(&mut self, request: &Request) {
        let text = serde_json::to_string(request).expect("requests are numbers and texts");
        let sent = writeln!(self.input, "{text}").and_then(|()| self.input.flush());
        if let Err(error) = sent {
            tracing::debug!(%error, "the measuring process does not listen");
        }
    }

    /// Waits for the next reply until a deadline. `idle` is called many times a second meanwhile.
    pub(crate) fn wait_for_reply(
        &mut self,
        deadline: Option<Instant>,
        idle: &mut dyn FnMut(&mut Self),
    ) -> Awaited {
        loop {
            let wait = deadline.map_or(POLL_INTERVAL, |deadline| {
                deadline.saturating_duration_since(Instant::now()).min(POLL_INTERVAL)
            });
            match self.replies.recv_timeout(wait) {
                Ok(Received::Reply(reply)) => return Awaited::Reply(reply),
                Ok(Received::Garbage(text)) => return Awaited::Garbage(text),
                Err(RecvTimeoutError::Disconnected) => return Awaited::Died(self.end()),
                Err(RecvTimeoutError::Timeout) => {
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Awaited::TimedOut;
                    }
                    idle(self);
                }
            }
        }
    }

    /// Ends the process, if it has not ended, and reports how it died.
    pub(crate) fn end(&mut self) -> Death {
        // A process that has closed its output is about to end: its own status tells more than ours.
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
        // The last lines distinguish out-of-memory from other deaths. A child of the process may keep the pipe open for longer.
        let _ = self.errors_end.recv_timeout(STDERR_TIMEOUT);
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
    /// The memory of a small machine, where the system does not report it.
    const FALLBACK_BYTES: u64 = 8 << 30;
    let information = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = information.lines().find_map(|line| {
        let kibibytes = line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?;
        kibibytes.trim().parse::<u64>().ok()?.checked_mul(1024)
    });
    total.unwrap_or(FALLBACK_BYTES) / 4 * 3
}
