//! Streams and events.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

use cudarc::driver::result;
use cudarc::driver::sys::{CUevent_flags, CUresult as Code};

use crate::support::{FAILING, Loaded, QUIET, SCALE, SOUND, address, code, context, launch};

/// Without a wait, a stream may read what another has not written yet.
#[test]
fn streams_are_ordered_by_events_alone() {
    let context = context(QUIET[0]);
    // SAFETY: the test orders its streams itself.
    unsafe { context.disable_event_tracking() };
    let (one, two) = (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let run = |wait: bool| {
        let data = one.clone_htod(&[1_u32; 64]).expect("it fits");
        let mut copy = one.alloc_zeros::<u32>(64).expect("it fits");
        one.synchronize().expect("nothing failed");
        launch(&one, scale, 64, address(&data, &one), &[5, 64]).expect("it is right");
        if wait {
            two.join(&one).expect("nothing failed");
        }
        two.memcpy_dtod(&data, &mut copy).expect("it fits");
        let seen = two.clone_dtoh(&copy).expect("it is there")[0];
        one.synchronize().expect("nothing failed");
        seen
    };
    assert_eq!(run(false), 1);
    assert_eq!(run(true), 5);
}

#[test]
fn the_legacy_stream_is_ordered_with_blocking_streams() {
    let context = context(SOUND);
    let legacy = context.default_stream();
    let blocking = result::stream::create(result::stream::StreamKind::Default).expect("a stream");
    // SAFETY: the stream lives until the end of the test.
    let stream = unsafe { context.wrap_borrowed_stream(blocking) };
    let data = legacy.alloc_zeros::<u32>(4).expect("it fits");
    // SAFETY: the buffer has 16 bytes.
    unsafe { result::memset_d8_async(address(&data, &stream), 1, 16, blocking) }.expect("it fits");
    assert_eq!(legacy.clone_dtoh(&data).expect("it is there"), [0x0101_0101; 4]);
    // SAFETY: nobody uses it any more.
    unsafe { result::stream::destroy(blocking) }.expect("it is a stream");
}

#[test]
fn events_tell_the_time() {
    let context = context(SOUND);
    let stream = context.new_stream().expect("a stream");
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = stream.clone_htod(&vec![1_u32; 4096]).expect("it fits");
    let mark = || stream.record_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).expect("an event");
    let time = |launches: u32| {
        let start = mark();
        for _ in 0..launches {
            launch(&stream, scale, 4096, address(&data, &stream), &[1, 4096]).expect("it is right");
        }
        start.elapsed_ms(&mark()).expect("both have come")
    };
    let (one, three) = (time(1), time(3));
    assert!(one > 0.0);
    assert!((three / one - 3.0).abs() < 0.1, "{one} {three}");
    // An event without time, and one that was never recorded.
    let (untimed, unused) = (
        stream.record_event(None).expect("an event"),
        context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT)).expect("an event"),
    );
    assert_eq!(code(untimed.elapsed_ms(&mark())), Code::CUDA_ERROR_INVALID_HANDLE);
    assert_eq!(code(unused.elapsed_ms(&mark())), Code::CUDA_ERROR_INVALID_HANDLE);
}

#[test]
fn asking_for_an_event_comes_to_an_end() {
    let stream = context(QUIET[1]).new_stream().expect("a stream");
    let _data = stream.alloc_zeros::<u32>(4).expect("it fits");
    let event = stream.record_event(None).expect("an event");
    assert!(!event.try_is_complete().expect("nothing failed"), "nothing was executed yet");
    let mut asked = 0;
    while !event.try_is_complete().expect("nothing failed") {
        asked += 1;
        assert!(asked < 10);
    }
}

#[test]
fn streams_call_functions_of_the_program() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let stream = context(QUIET[2]).new_stream().expect("a stream");
    unsafe extern "C" fn count(_: *mut c_void) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    // SAFETY: the function uses no argument.
    unsafe { result::stream::launch_host_function(stream.cu_stream(), count, std::ptr::null_mut()) }
        .expect("nothing failed");
    assert_eq!(CALLS.load(Ordering::Relaxed), 0);
    stream.synchronize().expect("nothing failed");
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
}

/// Memory that is given back while a kernel still uses it in another stream.
#[test]
fn a_forgotten_wait_before_memory_is_given_back_is_found() {
    let context = context(FAILING[0]);
    // SAFETY: the test orders its streams itself, wrongly.
    unsafe { context.disable_event_tracking() };
    let (one, two) = (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = two.clone_htod(&[1_u32; 64]).expect("it fits");
    two.synchronize().expect("nothing failed");
    launch(&one, scale, 64, address(&data, &one), &[5, 64]).expect("it is right");
    drop(data);
    two.synchronize().expect("nothing failed");
    assert_eq!(code(one.synchronize()), Code::CUDA_ERROR_ILLEGAL_ADDRESS);
}
