//! Contexts.

use std::ffi::{c_int, c_uint};
use std::ptr;

use super::{Object, export, put};
use crate::code::Code;
use crate::driver::{Driver, Handle};

export! {
    cuCtxCreate_v2(context: *mut Object, flags: c_uint, device: c_int) |driver| {
        let handle = driver.create_context(device, flags)?;
        driver.push_current(handle)?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(context, handle.to_pointer()) }
    }

    cuCtxCreate_v3(context: *mut Object, _affinities: Object, _count: c_int, flags: c_uint, device: c_int) |driver| {
        let handle = driver.create_context(device, flags)?;
        driver.push_current(handle)?;
        // SAFETY: as above.
        unsafe { put(context, handle.to_pointer()) }
    }

    cuCtxDestroy_v2(context: Object) |driver| { driver.destroy_context(Handle::of(context)) }

    cuCtxGetCurrent(context: *mut Object) |driver| {
        // SAFETY: as above.
        unsafe { put(context, driver.current().map_or(ptr::null_mut(), Handle::to_pointer)) }
    }

    cuCtxSetCurrent(context: Object) |driver| {
        driver.set_current((!context.is_null()).then(|| Handle::of(context)))
    }

    cuCtxPushCurrent_v2(context: Object) |driver| { driver.push_current(Handle::of(context)) }

    cuCtxPopCurrent_v2(context: *mut Object) |driver| {
        let handle = driver.pop_current()?;
        if context.is_null() {
            return Ok(());
        }
        // SAFETY: as above.
        unsafe { put(context, handle.to_pointer()) }
    }

    cuCtxGetDevice(device: *mut c_int) |driver| {
        let context = driver.usable()?;
        // SAFETY: as above.
        unsafe { put(device, driver.context_device(context)? as c_int) }
    }

    cuCtxSynchronize() |driver| {
        let context = driver.usable()?;
        driver.synchronise_context(context)
    }

    cuCtxGetLimit(value: *mut usize, limit: c_uint) |driver| {
        // SAFETY: as above.
        unsafe { put(value, driver.limit(limit)?) }
    }

    cuCtxSetLimit(limit: c_uint, value: usize) |driver| { driver.set_limit(limit, value) }

    cuCtxGetCacheConfig(config: *mut c_uint) |driver| {
        let context = driver.usable()?;
        // SAFETY: as above.
        unsafe { put(config, driver.cache_preference(context)?) }
    }

    cuCtxSetCacheConfig(config: c_uint) |driver| {
        let context = driver.usable()?;
        if config > 3 {
            return Err(Code::InvalidValue);
        }
        driver.set_cache_preference(context, config)
    }

    cuCtxGetFlags(flags: *mut c_uint) |driver| {
        let context = driver.usable()?;
        // SAFETY: as above.
        unsafe { put(flags, driver.context_flags(context)?) }
    }

    cuCtxGetApiVersion(_context: Object, version: *mut c_uint) |driver| {
        // SAFETY: as above.
        unsafe { put(version, driver.version()?) }
    }

    cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) |driver| {
        driver.usable()?;
        let (low, high) = Driver::PRIORITIES;
        // SAFETY: as above.
        unsafe { put(least, low).and(put(greatest, high)) }
    }

    // Nothing is recorded for a profiler.
    cuProfilerStart() |driver| { driver.usable().map(|_| ()) }

    cuProfilerStop() |driver| { driver.usable().map(|_| ()) }
}
