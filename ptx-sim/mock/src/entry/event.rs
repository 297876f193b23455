//! Events.

use std::ffi::c_uint;

use super::{Object, export, put};
use crate::code::Code;
use crate::driver::Handle;

export! {
    cuEventCreate(event: *mut Object, flags: c_uint) |driver| {
        let handle = driver.create_event(flags)?;
        // SAFETY: the program passes a place for the result.
        unsafe { put(event, handle.to_pointer()) }
    }

    cuEventDestroy_v2(event: Object) |driver| { driver.destroy_event(Handle::of(event)) }

    cuEventRecord(event: Object, stream: Object) |driver| {
        driver.record_event(Handle::of(event), Handle::of(stream))
    }

    cuEventRecordWithFlags(event: Object, stream: Object, flags: c_uint) |driver| {
        // Events outside of the graph that is recorded are not supported.
        match flags {
            0 => driver.record_event(Handle::of(event), Handle::of(stream)),
            1 => Err(Code::NotSupported),
            _ => Err(Code::InvalidValue),
        }
    }

    cuEventQuery(event: Object) |driver| { driver.query_event(Handle::of(event)) }

    cuEventSynchronize(event: Object) |driver| { driver.synchronise_event(Handle::of(event)) }

    cuEventElapsedTime(milliseconds: *mut f32, start: Object, end: Object) |driver| {
        // SAFETY: as above.
        unsafe { put(milliseconds, driver.elapsed(Handle::of(start), Handle::of(end))?) }
    }

    cuEventElapsedTime_v2(milliseconds: *mut f32, start: Object, end: Object) |driver| {
        // SAFETY: as above.
        unsafe { put(milliseconds, driver.elapsed(Handle::of(start), Handle::of(end))?) }
    }
}
