//! Graphs, and recording them.

use std::ffi::{c_uint, c_ulonglong};

use super::{Object, export, put};
use crate::code::Code;
use crate::driver::{CaptureMode, CaptureStatus, Handle};

/// `CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH`, `…_UPLOAD` and `…_USE_NODE_PRIORITY`.
const INSTANTIATE_FLAGS: c_ulonglong = 1 | 2 | 8;

export! {
    cuStreamBeginCapture_v2(stream: Object, mode: c_uint) |driver| {
        let mode = match mode {
            0 => CaptureMode::Global,
            1 => CaptureMode::ThreadLocal,
            2 => CaptureMode::Relaxed,
            _ => return Err(Code::InvalidValue),
        };
        driver.begin_capture(Handle::of(stream), mode)
    }

    cuStreamEndCapture(stream: Object, graph: *mut Object) |driver| {
        let ended = driver.end_capture(Handle::of(stream));
        let handle = ended.as_ref().map_or(std::ptr::null_mut(), |handle| handle.to_pointer());
        // SAFETY: the program passes a place for the result.
        unsafe { put(graph, handle) }?;
        ended.map(|_| ())
    }

    cuStreamIsCapturing(stream: Object, status: *mut CaptureStatus) |driver| {
        // SAFETY: as above.
        unsafe { put(status, driver.capture_status(Handle::of(stream))?) }
    }

    cuGraphInstantiateWithFlags(executable: *mut Object, graph: Object, flags: c_ulonglong) |driver| {
        if flags & !INSTANTIATE_FLAGS != 0 {
            return Err(Code::InvalidValue);
        }
        let handle = driver.instantiate(Handle::of(graph))?;
        // SAFETY: as above.
        unsafe { put(executable, handle.to_pointer()) }
    }

    cuGraphLaunch(executable: Object, stream: Object) |driver| {
        driver.launch_graph(Handle::of(executable), Handle::of(stream))
    }

    cuGraphUpload(executable: Object, stream: Object) |driver| {
        driver.upload_graph(Handle::of(executable), Handle::of(stream))
    }

    cuGraphClone(clone: *mut Object, graph: Object) |driver| {
        let handle = driver.clone_graph(Handle::of(graph))?;
        // SAFETY: as above.
        unsafe { put(clone, handle.to_pointer()) }
    }

    cuGraphGetNodes(graph: Object, nodes: *mut Object, count: *mut usize) |driver| {
        // Nodes have no handles here: only their number is given.
        if !nodes.is_null() {
            return Err(Code::NotSupported);
        }
        // SAFETY: as above.
        unsafe { put(count, driver.graph_size(Handle::of(graph))?) }
    }

    cuGraphDestroy(graph: Object) |driver| { driver.destroy_graph(Handle::of(graph)) }

    cuGraphExecDestroy(executable: Object) |driver| { driver.destroy_executable(Handle::of(executable)) }
}
