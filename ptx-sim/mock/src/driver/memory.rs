//! Device memory: allocations, copies and fills.
//!
//! Copies that programs may rely on as synchronous are executed before the call returns: all of the functions without a
//! stream, and copies into memory of the host that is not page-locked. Copies out of such memory take the bytes at once.

use tilewright_ptx_sim::Memory;

use super::Driver;
use super::host::HostAddress;
use super::table::Handle;
use super::work::Work;
use crate::code::{Code, Outcome};

impl Driver {
    pub(crate) fn allocate(&mut self, bytes: usize) -> Outcome<u64> {
        let device = self.context(self.usable()?)?.device;
        self.refuse_while_capturing(None)?;
        self.allocate_on(device, bytes)
    }

    fn allocate_on(&mut self, device: usize, bytes: usize) -> Outcome<u64> {
        if bytes == 0 {
            return Err(Code::InvalidValue);
        }
        let memory = &mut self.devices[device].memory;
        memory.allocate(bytes as u64, "device memory").map_err(|_| Code::OutOfMemory)
    }

    /// Allocates memory that a stream may use from now on.
    pub(crate) fn allocate_async(&mut self, bytes: usize, stream: Handle) -> Outcome<u64> {
        let stream = self.stream(stream)?;
        let device = self.context(self.streams.get(stream)?.context)?.device;
        self.allocate_ordered(device, bytes, stream)
    }

    /// As [`Driver::allocate_async`], from a pool.
    pub(crate) fn allocate_from_pool(&mut self, bytes: usize, pool: Handle, stream: Handle) -> Outcome<u64> {
        let stream = self.stream(stream)?;
        let device = self.pool_device(pool)?;
        self.allocate_ordered(device, bytes, stream)
    }

    fn allocate_ordered(&mut self, device: usize, bytes: usize, stream: Handle) -> Outcome<u64> {
        // Graphs with memory of their own are not supported.
        if self.streams.get(stream)?.capture.is_some() {
            return Err(Code::StreamCaptureUnsupported);
        }
        match self.allocate_on(device, bytes) {
            Err(Code::OutOfMemory) => {
                // Memory may be on its way back.
                self.synchronise_device(device)?;
                self.allocate_on(device, bytes)
            }
            result => result,
        }
    }

    pub(crate) fn free(&mut self, address: u64) -> Outcome {
        self.usable()?;
        if address == 0 {
            return Ok(());
        }
        self.check_start(address)?;
        self.refuse_while_capturing(None)?;
        let device = Memory::device_of(address).ok_or(Code::InvalidValue)?;
        self.synchronise_device(device as usize)?;
        self.memory_of(address)?.free(address).map_err(|_| Code::InvalidValue)
    }

    pub(crate) fn free_async(&mut self, address: u64, stream: Handle) -> Outcome {
        let stream = self.stream(stream)?;
        if address == 0 {
            return Ok(());
        }
        self.check_start(address)?;
        if self.streams.get(stream)?.capture.is_some() {
            return Err(Code::StreamCaptureUnsupported);
        }
        self.submit(stream, Work::Free { address }).map(|_| ())
    }

    /// An allocation begins at an address.
    fn check_start(&mut self, address: u64) -> Outcome {
        let (start, _) = self.allocation_of(address)?;
        if start == address { Ok(()) } else { Err(Code::InvalidValue) }
    }

    /// The first address and the size of the allocation that an address lies in.
    pub(crate) fn allocation_of(&mut self, address: u64) -> Outcome<(u64, u64)> {
        self.memory_of(address)?.allocation_of(address).map_err(|_| Code::InvalidValue)
    }

    /// An allocation has all these bytes.
    fn check_range(&mut self, address: u64, bytes: u64) -> Outcome {
        let (start, size) = self.allocation_of(address)?;
        let end = (address - start).checked_add(bytes).ok_or(Code::InvalidValue)?;
        if end <= size { Ok(()) } else { Err(Code::InvalidValue) }
    }

    /// Free and all bytes of the current device.
    pub(crate) fn memory_usage(&self) -> Outcome<(u64, u64)> {
        let device = self.context(self.usable()?)?.device;
        let (used, limit) = self.devices[device].memory.usage();
        Ok((limit - used, limit))
    }

    pub(crate) fn allocate_host(&mut self, bytes: usize) -> Outcome<HostAddress> {
        self.usable()?;
        self.refuse_while_capturing(None)?;
        self.pinned.allocate(bytes)
    }

    pub(crate) fn free_host(&mut self, address: HostAddress) -> Outcome {
        if !self.pinned.contains(address, 0) {
            return Err(Code::InvalidValue);
        }
        self.refuse_while_capturing(None)?;
        // Copies that use it are executed first; those of a context that failed are gone.
        for device in 0..self.devices.len() {
            let _ = self.synchronise_device(device);
        }
        self.pinned.free(address)
    }

    /// Copies to a device.
    ///
    /// # Safety
    /// `from` has to have `bytes` readable bytes until the call returns, or until the copy is done where it is page-locked memory.
    pub(crate) unsafe fn copy_from_host(
        &mut self,
        to: u64,
        from: HostAddress,
        bytes: usize,
        stream: Option<Handle>,
    ) -> Outcome {
        let Some(target) = self.copy_stream(stream)? else { return Err(Code::StreamCaptureUnsupported) };
        if bytes == 0 {
            return Ok(());
        }
        self.check_range(to, bytes as u64)?;
        let is_pinned = self.pinned.contains(from, bytes);
        let work = if is_pinned {
            Work::Upload { to, from, bytes: bytes as u64 }
        } else if self.streams.get(target)?.capture.is_some() {
            return Err(Code::StreamCaptureUnsupported);
        } else {
            // SAFETY: the caller promises that the bytes are there.
            Work::Write { to, data: unsafe { from.read(bytes) }.into() }
        };
        self.submit(target, work)?;
        if stream.is_none() { self.complete(target) } else { Ok(()) }
    }

    /// Copies from a device.
    ///
    /// # Safety
    /// As for [`Driver::copy_from_host`]; the bytes have to be writable.
    pub(crate) unsafe fn copy_to_host(
        &mut self,
        to: HostAddress,
        from: u64,
        bytes: usize,
        stream: Option<Handle>,
    ) -> Outcome {
        let Some(target) = self.copy_stream(stream)? else { return Err(Code::StreamCaptureUnsupported) };
        if bytes == 0 {
            return Ok(());
        }
        self.check_range(from, bytes as u64)?;
        let is_pinned = self.pinned.contains(to, bytes);
        if !is_pinned && self.streams.get(target)?.capture.is_some() {
            return Err(Code::StreamCaptureUnsupported);
        }
        self.submit(target, Work::Download { to, from, bytes: bytes as u64 })?;
        if stream.is_none() || !is_pinned { self.complete(target) } else { Ok(()) }
    }

    pub(crate) fn copy(&mut self, to: u64, from: u64, bytes: usize, stream: Option<Handle>) -> Outcome {
        let Some(target) = self.copy_stream(stream)? else { return Err(Code::StreamCaptureUnsupported) };
        if bytes == 0 {
            return Ok(());
        }
        self.check_range(to, bytes as u64)?;
        self.check_range(from, bytes as u64)?;
        self.submit(target, Work::Copy { to, from, bytes: bytes as u64 })?;
        Ok(())
    }

    pub(crate) fn fill(
        &mut self,
        to: u64,
        pattern: u32,
        width: u8,
        count: usize,
        stream: Option<Handle>,
    ) -> Outcome {
        let Some(target) = self.copy_stream(stream)? else { return Err(Code::StreamCaptureUnsupported) };
        if count == 0 {
            return Ok(());
        }
        let bytes = (count as u64).checked_mul(u64::from(width)).ok_or(Code::InvalidValue)?;
        self.check_range(to, bytes)?;
        if !to.is_multiple_of(u64::from(width)) {
            return Err(Code::InvalidValue);
        }
        self.submit(target, Work::Fill { to, pattern, width, count: count as u64 })?;
        Ok(())
    }

    /// The stream that a copy is submitted to: the legacy stream for functions without one, which must not be used while
    /// something is captured (`None`).
    fn copy_stream(&mut self, stream: Option<Handle>) -> Outcome<Option<Handle>> {
        match stream {
            Some(stream) => self.stream(stream).map(Some),
            None => {
                let legacy = self.context(self.usable()?)?.legacy_stream;
                Ok(self.refuse_while_capturing(None).ok().map(|()| legacy))
            }
        }
    }
}
