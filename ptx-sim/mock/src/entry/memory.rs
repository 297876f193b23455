//! Memory.

use std::ffi::{c_int, c_uint, c_void};

use super::{Object, export, put};
use crate::code::Code;
use crate::driver::{Handle, HostAddress};

/// `CU_MEMHOSTALLOC_PORTABLE`, `CU_MEMHOSTALLOC_DEVICEMAP` and `CU_MEMHOSTALLOC_WRITECOMBINED`.
const HOST_FLAGS: c_uint = 7;

export! {
    cuMemAlloc_v2(address: *mut u64, bytes: usize) |driver| {
        let start = driver.allocate(bytes)?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(address, start) }
    }

    cuMemFree_v2(address: u64) |driver| { driver.free(address) }

    cuMemAllocAsync(address: *mut u64, bytes: usize, stream: Object) |driver| {
        let start = driver.allocate_async(bytes, Handle::of(stream))?;
        // SAFETY: as above.
        unsafe { put(address, start) }
    }

    cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: Object, stream: Object) |driver| {
        let start = driver.allocate_from_pool(bytes, Handle::of(pool), Handle::of(stream))?;
        // SAFETY: as above.
        unsafe { put(address, start) }
    }

    cuMemFreeAsync(address: u64, stream: Object) |driver| { driver.free_async(address, Handle::of(stream)) }

    cuMemHostAlloc(place: *mut *mut c_void, bytes: usize, flags: c_uint) |driver| {
        if flags & !HOST_FLAGS != 0 {
            return Err(Code::InvalidValue);
        }
        let start = driver.allocate_host(bytes)?;
        // SAFETY: as above.
        unsafe { put(place, start.to_pointer()) }
    }

    cuMemAllocHost_v2(place: *mut *mut c_void, bytes: usize) |driver| {
        let start = driver.allocate_host(bytes)?;
        // SAFETY: as above.
        unsafe { put(place, start.to_pointer()) }
    }

    cuMemFreeHost(place: *mut c_void) |driver| { driver.free_host(HostAddress::of(place)) }

    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) |driver| {
        let (unused, all) = driver.memory_usage()?;
        // SAFETY: as above.
        unsafe { put(free, unused as usize).and(put(total, all as usize)) }
    }

    cuMemGetAddressRange_v2(base: *mut u64, size: *mut usize, address: u64) |driver| {
        let (start, bytes) = driver.allocation_of(address)?;
        // SAFETY: as above. Either place may be missing.
        unsafe {
            if !base.is_null() {
                put(base, start)?;
            }
            if !size.is_null() {
                put(size, bytes as usize)?;
            }
        }
        Ok(())
    }

    cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) |driver| {
        check_host(from, bytes)?;
        // SAFETY: the program promises that `bytes` bytes are readable; the copy is done when the call returns.
        unsafe { driver.copy_from_host(to, HostAddress::of(from), bytes, None) }
    }

    cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: Object) |driver| {
        check_host(from, bytes)?;
        // SAFETY: as above; page-locked memory stays until the program gives it back, which waits for the copy.
        unsafe { driver.copy_from_host(to, HostAddress::of(from), bytes, Some(Handle::of(stream))) }
    }

    cuMemcpyDtoH_v2(to: *mut c_void, from: u64, bytes: usize) |driver| {
        check_host(to, bytes)?;
        // SAFETY: the program promises that `bytes` bytes are writable; the copy is done when the call returns.
        unsafe { driver.copy_to_host(HostAddress::of(to), from, bytes, None) }
    }

    cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: Object) |driver| {
        check_host(to, bytes)?;
        // SAFETY: as for the copy to a device.
        unsafe { driver.copy_to_host(HostAddress::of(to), from, bytes, Some(Handle::of(stream))) }
    }

    cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) |driver| { driver.copy(to, from, bytes, None) }

    cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: Object) |driver| {
        driver.copy(to, from, bytes, Some(Handle::of(stream)))
    }

    cuMemcpyPeer(to: u64, _to_context: Object, from: u64, _from_context: Object, bytes: usize) |driver| {
        driver.copy(to, from, bytes, None)
    }

    cuMemcpyPeerAsync(
        to: u64, _to_context: Object, from: u64, _from_context: Object, bytes: usize, stream: Object,
    ) |driver| {
        driver.copy(to, from, bytes, Some(Handle::of(stream)))
    }

    cuMemsetD8_v2(to: u64, value: u8, count: usize) |driver| { driver.fill(to, value.into(), 1, count, None) }

    cuMemsetD16_v2(to: u64, value: u16, count: usize) |driver| { driver.fill(to, value.into(), 2, count, None) }

    cuMemsetD32_v2(to: u64, value: u32, count: usize) |driver| { driver.fill(to, value, 4, count, None) }

    cuMemsetD8Async(to: u64, value: u8, count: usize, stream: Object) |driver| {
        driver.fill(to, value.into(), 1, count, Some(Handle::of(stream)))
    }

    cuMemsetD16Async(to: u64, value: u16, count: usize, stream: Object) |driver| {
        driver.fill(to, value.into(), 2, count, Some(Handle::of(stream)))
    }

    cuMemsetD32Async(to: u64, value: u32, count: usize, stream: Object) |driver| {
        driver.fill(to, value, 4, count, Some(Handle::of(stream)))
    }

    cuMemPoolTrimTo(pool: Object, _keep: usize) |driver| { driver.pool_device(Handle::of(pool)).map(|_| ()) }

    // Pools hold nothing back, so that no attribute changes what they do.
    cuMemPoolSetAttribute(pool: Object, attribute: c_int, value: *mut c_void) |driver| {
        driver.pool_device(Handle::of(pool))?;
        if (1..=8).contains(&attribute) && !value.is_null() { Ok(()) } else { Err(Code::InvalidValue) }
    }
}

/// A copy of some bytes needs an address.
fn check_host(address: *const c_void, bytes: usize) -> Result<(), Code> {
    if address.is_null() && bytes > 0 { Err(Code::InvalidValue) } else { Ok(()) }
}
