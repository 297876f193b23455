//! Memory: copies, fills, limits, page-locked memory.

use cudarc::driver::sys::CUresult as Code;
use cudarc::driver::{CudaSlice, result, sys};

use crate::support::{OTHER, SMALL, SOUND, code, context};

#[test]
fn devices_have_names_attributes_and_memory() {
    let context = context(SOUND);
    assert_eq!(context.name().expect("it has one"), "Sound");
    assert_eq!(context.compute_capability().expect("it has one"), (8, 0));
    assert_eq!(context.total_mem().expect("it has some"), 4 << 30);
    let shared = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    assert_eq!(context.attribute(shared).expect("it is known"), 163 << 10);
    assert_eq!(cudarc::driver::CudaContext::device_count().expect("there are devices"), 12);
    assert_eq!(code(cudarc::driver::CudaContext::new(99)), Code::CUDA_ERROR_INVALID_DEVICE);
}

#[test]
fn copies_go_there_and_back() {
    let stream = context(SOUND).default_stream();
    let values: Vec<u32> = (0..1000).collect();
    let uploaded = stream.clone_htod(&values).expect("it fits");
    let copied = stream.clone_dtod(&uploaded).expect("it fits");
    assert_eq!(stream.clone_dtoh(&copied).expect("it is there"), values);
    let mut zeros = stream.alloc_zeros::<u32>(10).expect("it fits");
    assert_eq!(stream.clone_dtoh(&zeros).expect("it is there"), [0; 10]);
    stream.memcpy_htod(&[7; 10], &mut zeros).expect("it fits");
    assert_eq!(stream.clone_dtoh(&zeros.slice(3..5)).expect("it is there"), [7; 2]);
}

#[test]
fn copies_between_devices() {
    let (one, other) = (context(SOUND).default_stream(), context(OTHER).default_stream());
    let values = one.clone_htod(&[1_u32, 2, 3]).expect("it fits");
    let mut copied: CudaSlice<u32> = other.alloc_zeros(3).expect("it fits");
    other.synchronize().expect("nothing failed");
    one.memcpy_dtod(&values, &mut copied).expect("it fits");
    one.synchronize().expect("nothing failed");
    assert_eq!(other.clone_dtoh(&copied).expect("it is there"), [1, 2, 3]);
}

#[test]
fn memory_runs_out_and_comes_back() {
    let context = context(SMALL);
    let stream = context.default_stream();
    let large = stream.alloc_zeros::<u8>(1 << 19).expect("half of it is free");
    assert_eq!(code(stream.alloc_zeros::<u8>((1 << 19) + 1)), Code::CUDA_ERROR_OUT_OF_MEMORY);
    let (free, total) = context.mem_get_info().expect("it is known");
    assert_eq!((free, total), (1 << 19, 1 << 20));
    drop(large);
    // The memory is given back when the stream comes there; an allocation waits for that.
    stream.alloc_zeros::<u8>(1 << 20).expect("all of it is free");
}

#[test]
fn wrong_addresses_are_refused() {
    let context = context(SOUND);
    context.bind_to_thread().expect("nothing failed");
    let mut room = [0_u8; 8];
    let stream = context.default_stream();
    // SAFETY: the driver looks addresses of devices up and follows none.
    unsafe {
        let buffer = result::malloc_sync(8).expect("it fits");
        let beyond = result::memcpy_dtoh_sync(&mut room, buffer + 1);
        assert_eq!(code(beyond), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(code(result::memcpy_htod_sync(12, &room)), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(code(result::free_sync(buffer + 4)), Code::CUDA_ERROR_INVALID_VALUE);
        result::free_sync(buffer).expect("it is an allocation");
        assert_eq!(code(result::free_sync(buffer)), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(code(result::malloc_sync(0)), Code::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(code(result::free_host(room.as_mut_ptr().cast())), Code::CUDA_ERROR_INVALID_VALUE);
    }
    stream.synchronize().expect("none of these ends the context");
}

/// A copy into page-locked memory is done when somebody waits, and no earlier.
#[test]
fn copies_to_pinned_memory_wait_for_the_stream() {
    let context = context(SOUND);
    let stream = context.new_stream().expect("streams can be made");
    let data = stream.clone_htod(&[5_u32; 4]).expect("it fits");
    stream.synchronize().expect("nothing failed");
    // SAFETY: all bytes are written before they are read.
    let mut pinned = unsafe { context.alloc_pinned_with_flags::<u32>(4, 0) }.expect("it fits");
    pinned.as_mut_slice().expect("nothing uses it").fill(0);
    let place = pinned.as_mut_ptr().expect("nothing uses it");
    let from = crate::support::address(&data, &stream);
    // SAFETY: the memory lives until the end of the test.
    let peek = || unsafe { place.read_volatile() };
    // SAFETY: as above.
    let target = unsafe { std::slice::from_raw_parts_mut(place, 4) };
    // SAFETY: as above.
    unsafe { result::memcpy_dtoh_async(target, from, stream.cu_stream()) }.expect("it fits");
    assert_eq!(peek(), 0, "the copy may be late");
    stream.synchronize().expect("nothing failed");
    assert_eq!(peek(), 5);
}
