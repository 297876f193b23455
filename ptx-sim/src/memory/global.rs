//! Global memory: allocations that lie so far from each other that no index out of one reaches another.

use thiserror::Error;

use crate::race::Shadow;

/// Each allocation has a range of this many bytes (as a power of two) for itself.
const STRIDE: u32 = 36;

/// The memory of each device has this many such ranges (as a power of two).
const RANGES: u32 = 20;

/// Why memory was not allocated, read or written by the host.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum MemoryError {
    /// More than the limit.
    #[error("{wanted} more bytes of device memory, but {used} of {limit} are in use")]
    OutOfMemory {
        /// Bytes that were asked for.
        wanted: u64,
        /// Bytes in use.
        used: u64,
        /// Bytes that there are.
        limit: u64,
    },
    /// No allocation has these bytes.
    #[error("{bytes} bytes at {address:#x} are not inside of an allocation")]
    Outside {
        /// The first byte.
        address: u64,
        /// How many.
        bytes: u64,
    },
}

/// Why an access of a kernel has no meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// No allocation is near.
    Nowhere,
    /// Beyond the end, or before the start, of the allocation of this number.
    Outside { allocation: usize, offset: i64 },
    /// The allocation was given back.
    Freed { allocation: usize },
}

/// An allocation.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
    pub(crate) freed: bool,
    pub(crate) constant: bool,
    /// Which bytes were written, one bit each; `None` if all were.
    written: Option<Vec<u64>>,
    pub(crate) shadow: Shadow,
}

/// Device memory.
#[derive(Clone, Debug)]
pub struct Memory {
    allocations: Vec<Allocation>,
    /// How many ranges of addresses lie before those of this memory.
    first: u64,
    used: u64,
    limit: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::with_limit(8 << 30)
    }
}

impl Memory {
    /// How many devices can have addresses of their own.
    pub const DEVICES: u32 = 16;

    /// Memory of at most `limit` bytes.
    pub fn with_limit(limit: u64) -> Memory {
        Memory::of_device(0, limit)
    }

    /// Memory of one of several devices, with at most `limit` bytes. An address tells the device: see [`Memory::device_of`].
    ///
    /// # Panics
    /// If the number of the device is not below [`Memory::DEVICES`].
    pub fn of_device(device: u32, limit: u64) -> Memory {
        assert!(device < Self::DEVICES, "there are at most {} devices", Self::DEVICES);
        Memory { allocations: Vec::new(), first: u64::from(device) << RANGES, used: 0, limit }
    }

    /// The device that an address belongs to, if it is one of global memory.
    pub fn device_of(address: u64) -> Option<u32> {
        let range = (address >> STRIDE).checked_sub(1)?;
        let device = u32::try_from(range >> RANGES).ok()?;
        (device < Self::DEVICES).then_some(device)
    }

    /// The first address and the size of the allocation that an address lies in.
    ///
    /// # Errors
    /// If it lies in none.
    pub fn allocation_of(&self, address: u64) -> Result<(u64, u64), MemoryError> {
        let (number, offset) = self.range(address, 0)?;
        Ok((address - offset as u64, self.allocations[number].data.len() as u64))
    }

    /// Bytes in use, and bytes that there are.
    pub fn usage(&self) -> (u64, u64) {
        (self.used, self.limit)
    }

    /// Allocates bytes that are not written yet, and gives their address. The name is for messages.
    ///
    /// # Errors
    /// If the limit is reached.
    pub fn allocate(&mut self, bytes: u64, name: &str) -> Result<u64, MemoryError> {
        let out = MemoryError::OutOfMemory { wanted: bytes, used: self.used, limit: self.limit };
        let fits = bytes < 1 << STRIDE
            && self.allocations.len() + 1 < 1 << RANGES
            && self.used.checked_add(bytes).is_some_and(|sum| sum <= self.limit);
        let mut data = Vec::new();
        if !fits || data.try_reserve_exact(bytes as usize).is_err() {
            return Err(out);
        }
        // Bytes that are read before they are written should make results look wrong.
        data.resize(bytes as usize, 0xff);
        self.used += bytes;
        self.allocations.push(Allocation {
            name: name.to_owned(),
            data,
            freed: false,
            constant: false,
            written: Some(vec![0; (bytes as usize).div_ceil(64)]),
            shadow: Shadow::default(),
        });
        Ok(self.start(self.allocations.len() - 1))
    }

    /// Allocates memory with these contents.
    ///
    /// # Errors
    /// If the limit is reached.
    pub fn allocate_with(&mut self, data: &[u8], name: &str) -> Result<u64, MemoryError> {
        let address = self.allocate(data.len() as u64, name)?;
        self.write(address, data)?;
        Ok(address)
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// If the address is not that of an allocation.
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let outside = MemoryError::Outside { address, bytes: 0 };
        let (number, offset) = self.place(address).ok_or_else(|| outside.clone())?;
        let allocation = &mut self.allocations[number];
        if offset != 0 || allocation.freed {
            return Err(outside);
        }
        self.used -= allocation.data.len() as u64;
        allocation.free();
        Ok(())
    }

    /// Gives all memory back.
    pub fn free_all(&mut self) {
        for allocation in self.allocations.iter_mut().filter(|allocation| !allocation.freed) {
            allocation.free();
        }
        self.used = 0;
    }

    /// The address of an allocation.
    fn start(&self, number: usize) -> u64 {
        (self.first + number as u64 + 1) << STRIDE
    }

    fn place(&self, address: u64) -> Option<(usize, u64)> {
        let number = (address >> STRIDE).checked_sub(1 + self.first)? as usize;
        (number < self.allocations.len()).then_some((number, address & ((1 << STRIDE) - 1)))
    }

    fn range(&self, address: u64, bytes: u64) -> Result<(usize, usize), MemoryError> {
        let outside = MemoryError::Outside { address, bytes };
        let (number, offset) = self.place(address).ok_or_else(|| outside.clone())?;
        let allocation = &self.allocations[number];
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= allocation.data.len() as u64);
        if inside && !allocation.freed { Ok((number, offset as usize)) } else { Err(outside) }
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// If they are not inside of an allocation.
    pub fn read(&self, address: u64, bytes: u64) -> Result<&[u8], MemoryError> {
        let (number, offset) = self.range(address, bytes)?;
        Ok(&self.allocations[number].data[offset..offset + bytes as usize])
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// If they are not inside of an allocation.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), MemoryError> {
        let (number, offset) = self.range(address, data.len() as u64)?;
        let allocation = &mut self.allocations[number];
        allocation.data[offset..offset + data.len()].copy_from_slice(data);
        if data.len() == allocation.data.len() {
            allocation.written = None;
        } else {
            allocation.mark_written(offset, data.len());
        }
        Ok(())
    }

    /// How many bytes of an allocation were written by nobody.
    ///
    /// # Errors
    /// If the address is not inside of an allocation.
    pub fn unwritten(&self, address: u64) -> Result<u64, MemoryError> {
        let (number, _) = self.range(address, 0)?;
        let allocation = &self.allocations[number];
        Ok(allocation.written.as_ref().map_or(0, |bits| {
            let written: u64 = bits.iter().map(|word| u64::from(word.count_ones())).sum();
            allocation.data.len() as u64 - written
        }))
    }

    /// The allocation and the offset of an access.
    pub(crate) fn find(&self, address: u64, bytes: u64) -> Result<(usize, usize), Fault> {
        let Some((number, offset)) = self.place(address) else { return Err(self.near(address)) };
        let allocation = &self.allocations[number];
        if allocation.freed {
            return Err(Fault::Freed { allocation: number });
        }
        if offset + bytes > allocation.data.len() as u64 {
            return Err(self.near(address));
        }
        Ok((number, offset as usize))
    }

    /// Which allocation an address outside of all probably meant: the one before it, or the one behind it if it is close to that.
    fn near(&self, address: u64) -> Fault {
        let behind = address.wrapping_add(1 << (STRIDE - 1)) >> STRIDE;
        let number = behind.checked_sub(1 + self.first).map(|number| number as usize);
        let Some(number) = number.filter(|number| *number < self.allocations.len()) else {
            return Fault::Nowhere;
        };
        let offset = address.wrapping_sub(self.start(number)) as i64;
        Fault::Outside { allocation: number, offset }
    }

    pub(crate) fn allocation(&self, number: usize) -> &Allocation {
        &self.allocations[number]
    }

    pub(crate) fn allocation_mut(&mut self, number: usize) -> &mut Allocation {
        &mut self.allocations[number]
    }

    /// Kernels must not write to an allocation any more.
    pub(crate) fn make_constant(&mut self, address: u64) {
        if let Some((number, _)) = self.place(address) {
            self.allocations[number].constant = true;
        }
    }

    /// Forgets who accessed what, before a launch.
    pub(crate) fn forget_accesses(&mut self) {
        for allocation in &mut self.allocations {
            allocation.shadow = Shadow::default();
        }
    }

    /// Bytes of all allocations that differ from another memory's: number, offset of the first, and how many.
    pub(crate) fn differences(&self, other: &Memory) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (number, (ours, theirs)) in self.allocations.iter().zip(&other.allocations).enumerate() {
            if ours.data == theirs.data {
                continue;
            }
            let mut pairs = ours.data.iter().zip(&theirs.data).enumerate();
            if let Some((first, _)) = pairs.find(|(_, (a, b))| a != b) {
                let count = 1 + pairs.filter(|(_, (a, b))| a != b).count();
                found.push((number, first, count));
            }
        }
        found
    }
}

impl Allocation {
    fn free(&mut self) {
        self.data = Vec::new();
        self.written = None;
        self.shadow = Shadow::default();
        self.freed = true;
    }

    /// Whether all these bytes were written.
    pub(crate) fn is_written(&self, offset: usize, bytes: usize) -> bool {
        match &self.written {
            None => true,
            Some(bits) => {
                let (word, bit) = (offset / 64, offset % 64);
                if bit + bytes <= 64 {
                    let mask = (u64::MAX >> (64 - bytes)) << bit;
                    return bits[word] & mask == mask;
                }
                (offset..offset + bytes).all(|at| bits[at / 64] >> (at % 64) & 1 != 0)
            }
        }
    }

    pub(crate) fn mark_written(&mut self, offset: usize, bytes: usize) {
        let Some(bits) = &mut self.written else { return };
        let mut at = offset;
        let end = offset + bytes;
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let count = (64 - bit).min(end - at);
            bits[word] |= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }
}
