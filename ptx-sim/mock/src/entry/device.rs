//! Devices.

use std::ffi::{c_char, c_int};

use super::{Object, export, put};
use crate::code::Code;

export! {
    cuDeviceGet(device: *mut c_int, ordinal: c_int) |driver| {
        driver.check_device(ordinal)?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(device, ordinal) }
    }

    cuDeviceGetCount(count: *mut c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(count, driver.device_count() as c_int) }
    }

    cuDeviceGetName(name: *mut c_char, len: c_int, device: c_int) |driver| {
        let text = driver.device_name(device)?;
        let room = usize::try_from(len).ok().and_then(|len| len.checked_sub(1)).ok_or(Code::InvalidValue)?;
        if name.is_null() {
            return Err(Code::InvalidValue);
        }
        let bytes = &text.as_bytes()[..text.len().min(room)];
        // SAFETY: the program passes room for `len` bytes; these and a zero byte are no more.
        unsafe {
            name.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            name.add(bytes.len()).write(0);
        }
        Ok(())
    }

    cuDeviceGetUuid(uuid: *mut [u8; 16], device: c_int) |driver| {
        driver.check_device(device)?;
        let mut bytes = *b"tilewright-sim\0\0";
        bytes[15] = device as u8;
        // SAFETY: as above.
        unsafe { put(uuid, bytes) }
    }

    cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) |driver| {
        driver.check_device(device)?;
        let mut bytes = *b"tilewright-sim\0\0";
        bytes[15] = device as u8;
        // SAFETY: as above.
        unsafe { put(uuid, bytes) }
    }

    cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(bytes, driver.device_memory(device)? as usize) }
    }

    cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(value, driver.device_attribute(device, attribute)?) }
    }

    cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int) |driver| {
        driver.check_device(device)?;
        driver.check_device(peer)?;
        // Kernels of a device see its own memory alone.
        // SAFETY: as above.
        unsafe { put(can, 0) }
    }

    cuDevicePrimaryCtxRetain(context: *mut Object, device: c_int) |driver| {
        let handle = driver.retain_primary(device)?;
        // SAFETY: as above.
        unsafe { put(context, handle.to_pointer()) }
    }

    cuDevicePrimaryCtxRelease_v2(device: c_int) |driver| { driver.release_primary(device) }

    cuDevicePrimaryCtxReset_v2(device: c_int) |driver| { driver.reset_primary(device) }

    cuDevicePrimaryCtxGetState(device: c_int, flags: *mut u32, active: *mut c_int) |driver| {
        let (set, is_active) = driver.primary_state(device)?;
        // SAFETY: as above.
        unsafe { put(flags, set).and(put(active, c_int::from(is_active))) }
    }

    cuDeviceGetDefaultMemPool(pool: *mut Object, device: c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(pool, driver.device_pool(device)?.to_pointer()) }
    }

    cuDeviceGetMemPool(pool: *mut Object, device: c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(pool, driver.device_pool(device)?.to_pointer()) }
    }
}
