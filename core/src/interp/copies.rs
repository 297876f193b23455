//! Asynchronous stores: elements that are under way until the thread that stores them has waited for them.
//!
//! The value is stored at once, which no program can tell: an access to an element that is under way is a fault. An element arrives
//! when its thread waits, so that other threads must not access it before the next barrier behind.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::interp::InterpError;
use crate::interp::machine::Machine;
use crate::interp::memory::Memory;
use crate::interp::threads::Action;

/// A place in memory: the memory's number, and the position there.
type Place = (u32, usize);

/// The copies of all threads of a block that have not arrived.
#[derive(Default)]
pub(super) struct CopiesUnderWay {
    elements: FxHashMap<Place, u32>,
    threads: FxHashMap<Option<u32>, Groups>,
}

/// The copies of one thread: those since the last group, and the groups, the oldest first.
#[derive(Default)]
struct Groups {
    open: Vec<Place>,
    closed: VecDeque<Vec<Place>>,
}

impl CopiesUnderWay {
    /// Whether no element is under way.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Whether an element is under way.
    pub(super) fn holds(&self, memory: u32, position: usize) -> bool {
        self.elements.contains_key(&(memory, position))
    }

    /// Notes that a thread stores an element asynchronously.
    pub(super) fn start(&mut self, thread: Option<u32>, memory: u32, position: usize) {
        *self.elements.entry((memory, position)).or_default() += 1;
        self.threads.entry(thread).or_default().open.push((memory, position));
    }

    /// Makes a group of a thread's copies since the last one.
    pub(super) fn commit(&mut self, thread: Option<u32>) {
        let own = self.threads.entry(thread).or_default();
        let group = std::mem::take(&mut own.open);
        own.closed.push_back(group);
    }

    /// The elements of a thread that arrive when it waits until at most `left` groups are under way.
    fn arrive(&mut self, thread: Option<u32>, left: usize) -> Vec<Place> {
        let Some(own) = self.threads.get_mut(&thread) else { return Vec::new() };
        let count = own.closed.len().saturating_sub(left);
        let arrived: Vec<Place> = own.closed.drain(..count).flatten().collect();
        for place in &arrived {
            if let Some(count) = self.elements.get_mut(place) {
                *count -= 1;
                if *count == 0 {
                    self.elements.remove(place);
                }
            }
        }
        arrived
    }

    /// Forgets the elements of a memory whose contents are no longer defined.
    pub(super) fn forget(&mut self, memory: u32) {
        if self.elements.is_empty() {
            return;
        }
        self.elements.retain(|(own, _), _| *own != memory);
        for groups in self.threads.values_mut() {
            let parts = groups.closed.iter_mut().chain([&mut groups.open]);
            parts.for_each(|part| part.retain(|(own, _)| *own != memory));
        }
    }
}

impl Machine<'_, '_> {
    /// Lets a thread wait until at most `left` of its groups are under way.
    pub(super) fn wait_for_copies(&mut self, left: u32) -> Result<(), InterpError> {
        let arrived = self.copies.arrive(self.sharing.thread, left as usize);
        if self.sharing.thread.is_none() {
            return Ok(());
        }
        for (memory, position) in arrived {
            if let Some(other) = self.sharing.note(memory as usize, position, Action::Store) {
                return Err(InterpError::Race {
                    action: "arrival",
                    buffer: self.name_of(memory).to_owned(),
                    indices: Memory::indices_of(&self.memories[memory as usize].shape, position),
                    thread: self.sharing.thread.unwrap_or_default(),
                    other,
                });
            }
        }
        Ok(())
    }

    /// Fails when an element that is accessed is under way.
    #[cold]
    pub(super) fn check_arrived(
        &self,
        memory: u32,
        position: usize,
        action: Action,
    ) -> Result<(), InterpError> {
        if !self.copies.holds(memory, position) {
            return Ok(());
        }
        Err(InterpError::UnderWay {
            action: action.text(),
            buffer: self.name_of(memory).to_owned(),
            indices: Memory::indices_of(&self.memories[memory as usize].shape, position),
        })
    }
}
