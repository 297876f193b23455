//! The threads of a block, which run at the same time and wait for each other at barriers.
//!
//! A nest of loops over threads with a barrier inside is executed phase by phase: every thread runs until its next
//! barrier, one thread after the other, before any of them continues. Threads that exchange values wait for each other, too, and no
//! memory that they share becomes visible by that. Two threads that access the same element in one phase,
//! unless both load it, are a fault: no barrier orders them. A program without that fault has the same
//! results whatever the order of the threads.

use crate::interp::InterpError;
use crate::interp::code::{Position, Register, ThreadNest};
use crate::interp::machine::{Machine, Stop};
use crate::interp::memory::Memory;

/// One thread between two phases.
struct Thread<'a> {
    /// The position where it continues.
    position: Position,
    registers: Vec<u64>,
    /// The orders of iterations of its loops.
    orders: Vec<Vec<u64>>,
    /// Its own memory.
    memories: Vec<Memory<'a>>,
}

impl<'a> Machine<'_, 'a> {
    /// Executes a nest of loops over threads; gives the position behind it.
    pub(super) fn threads(&mut self, number: u32) -> Result<usize, InterpError> {
        let code = self.code;
        let nest = &code.thread_nests[number as usize];
        let mut threads = self.start(nest)?;
        self.sharing.begin_phase();
        loop {
            let next = match self.phase(nest, &mut threads)? {
                Stop::Barrier(next) => {
                    self.sharing.begin_phase();
                    next
                }
                Stop::Shuffle { next, value, to, mask } => {
                    exchange_values(&mut threads, value, to, mask)?;
                    next
                }
                Stop::Halt | Stop::EndThread => return Ok(nest.end as usize),
            };
            threads.iter_mut().for_each(|thread| thread.position = next);
        }
    }

    fn start(&mut self, nest: &ThreadNest) -> Result<Vec<Thread<'a>>, InterpError> {
        let extents: Vec<u64> =
            nest.loops.iter().map(|(_, extent)| self.int(*extent).max(0) as u64).collect();
        let thread = |mut number: u64| {
            let mut registers = self.registers.clone();
            for ((var, _), extent) in nest.loops.iter().zip(&extents).rev() {
                registers[*var as usize] = number % extent;
                number /= extent;
            }
            let fresh = |memory: &u32| self.memories[*memory as usize].fresh(self.name_of(*memory));
            let memories = nest.private.iter().map(fresh).collect::<Result<_, _>>()?;
            Ok(Thread { position: nest.body, registers, orders: self.orders.clone(), memories })
        };
        (0..extents.iter().product()).map(thread).collect()
    }

    /// Runs every thread to where it waits for others, which is the same place for all, or to its end.
    fn phase(&mut self, nest: &ThreadNest, threads: &mut [Thread<'a>]) -> Result<Stop, InterpError> {
        let mut stops = Vec::with_capacity(threads.len());
        for number in self.order_of(threads.len()) {
            let thread = &mut threads[number];
            self.exchange(nest, thread);
            self.sharing.thread = Some(number as u32);
            let stop = self.run(thread.position);
            self.sharing.thread = None;
            self.exchange(nest, thread);
            stops.push(stop?);
        }
        match stops.first() {
            Some(first) if stops.iter().any(|stop| stop != first) => Err(InterpError::DivergentBarrier),
            first => Ok(first.copied().unwrap_or(Stop::EndThread)),
        }
    }

    /// Exchanges the state of a thread and the current one.
    fn exchange(&mut self, nest: &ThreadNest, thread: &mut Thread<'a>) {
        std::mem::swap(&mut self.registers, &mut thread.registers);
        std::mem::swap(&mut self.orders, &mut thread.orders);
        for (memory, own) in nest.private.iter().zip(&mut thread.memories) {
            std::mem::swap(&mut self.memories[*memory as usize], own);
        }
    }
}

/// Gives each thread the value of its partner.
fn exchange_values(
    threads: &mut [Thread<'_>],
    value: Register,
    to: Register,
    mask: u32,
) -> Result<(), InterpError> {
    let values: Vec<u64> = threads.iter().map(|thread| thread.registers[value as usize]).collect();
    for (number, thread) in threads.iter_mut().enumerate() {
        let partner = values.get(number ^ mask as usize).copied();
        let missing = || {
            InterpError::Malformed(format!(
                "thread {number} has no partner {} to exchange values with",
                number ^ mask as usize
            ))
        };
        thread.registers[to as usize] = partner.ok_or_else(missing)?;
    }
    Ok(())
}

/// Which threads have accessed which elements of the memory that they share.
#[derive(Default)]
pub(super) struct Sharing {
    /// The thread that runs; `None` outside of loops over threads.
    pub(super) thread: Option<u32>,
    phase: u32,
    /// The marks of each memory, by position.
    marks: Vec<Vec<Mark>>,
}

/// The accesses to one element in a phase.
#[derive(Clone, Copy, Default)]
struct Mark {
    phase: u32,
    /// The thread that stored it.
    writer: Option<u32>,
    /// Two different threads that loaded it, of however many.
    readers: [Option<u32>; 2],
    /// Two different threads that updated it in one step, of however many.
    updaters: [Option<u32>; 2],
}

/// How a thread accesses an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Load,
    Store,
    /// A part of an update in one step.
    Update,
}

impl Action {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Action::Load => "load",
            Action::Store => "store",
            Action::Update => "update",
        }
    }
}

impl Sharing {
    fn begin_phase(&mut self) {
        self.phase += 1;
    }

    /// Notes an access of the thread that runs. Gives the thread that it races with.
    pub(super) fn note(&mut self, memory: usize, position: usize, action: Action) -> Option<u32> {
        let thread = self.thread?;
        if self.marks.len() <= memory {
            self.marks.resize(memory + 1, Vec::new());
        }
        let marks = &mut self.marks[memory];
        if marks.len() <= position {
            marks.resize(position + 1, Mark::default());
        }
        let mark = &mut marks[position];
        if mark.phase != self.phase {
            *mark = Mark { phase: self.phase, ..Mark::default() };
        }
        let other = |accessor: Option<u32>| accessor.filter(|accessor| *accessor != thread);
        let any_other = |[first, second]: [Option<u32>; 2]| other(first).or(other(second));
        let racing = match action {
            Action::Load => other(mark.writer).or(any_other(mark.updaters)),
            Action::Store => other(mark.writer).or(any_other(mark.readers)).or(any_other(mark.updaters)),
            Action::Update => other(mark.writer).or(any_other(mark.readers)),
        };
        match action {
            Action::Load => add(&mut mark.readers, thread),
            Action::Store => mark.writer = Some(thread),
            Action::Update => add(&mut mark.updaters, thread),
        }
        racing
    }
}

/// Adds a thread to the first two different ones.
fn add(threads: &mut [Option<u32>; 2], thread: u32) {
    let [first, second] = threads;
    if *first.get_or_insert(thread) != thread {
        second.get_or_insert(thread);
    }
}
