//! Streams.

use std::ffi::{c_int, c_uint, c_void};

use super::{Object, export, put};
use crate::code::Code;
use crate::driver::{Driver, Handle};

export! {
    cuStreamCreate(stream: *mut Object, flags: c_uint) |driver| {
        let handle = driver.create_stream(flags, 0)?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(stream, handle.to_pointer()) }
    }

    cuStreamCreateWithPriority(stream: *mut Object, flags: c_uint, priority: c_int) |driver| {
        let (least, greatest) = Driver::PRIORITIES;
        let handle = driver.create_stream(flags, priority.clamp(greatest, least))?;
        // SAFETY: as above.
        unsafe { put(stream, handle.to_pointer()) }
    }

    cuStreamGetPriority(stream: Object, priority: *mut c_int) |driver| {
        // SAFETY: as above.
        unsafe { put(priority, driver.stream_priority(Handle::of(stream))?) }
    }

    cuStreamDestroy_v2(stream: Object) |driver| { driver.destroy_stream(Handle::of(stream)) }

    cuStreamSynchronize(stream: Object) |driver| { driver.synchronise_stream(Handle::of(stream)) }

    cuStreamQuery(stream: Object) |driver| { driver.query_stream(Handle::of(stream)) }

    cuStreamWaitEvent(stream: Object, event: Object, flags: c_uint) |driver| {
        if flags > 1 {
            return Err(Code::InvalidValue);
        }
        driver.wait_event(Handle::of(stream), Handle::of(event))
    }

    cuLaunchHostFunc(
        stream: Object, function: Option<unsafe extern "C" fn(*mut c_void)>, argument: *mut c_void,
    ) |driver| {
        let function = function.ok_or(Code::InvalidValue)?;
        // SAFETY: the program promises that the function may be called with this argument when the stream comes to it.
        unsafe { driver.call(Handle::of(stream), function, argument) }
    }
}
