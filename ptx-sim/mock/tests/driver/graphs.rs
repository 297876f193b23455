//! Captured graphs.

use cudarc::driver::sys::{
    CUgraphInstantiate_flags, CUresult as Code, CUstreamCaptureMode, CUstreamCaptureStatus,
};

use crate::support::{Loaded, OTHER, SCALE, address, code, context, launch};

/// Captures of other threads must not be disturbed: tests of this file do not run beside each other.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

const MODE: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
const FLAGS: CUgraphInstantiate_flags = CUgraphInstantiate_flags(0);

#[test]
fn graphs_are_recorded_and_launched() {
    let _alone = ALONE.lock().expect("no test failed");
    let context = context(OTHER);
    // SAFETY: one stream does everything.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().expect("a stream");
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = stream.clone_htod(&[1_u32; 64]).expect("it fits");
    stream.synchronize().expect("nothing failed");
    stream.begin_capture(MODE).expect("nothing is captured");
    assert_eq!(
        stream.capture_status().expect("it is known"),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE
    );
    for factor in [2, 3] {
        launch(&stream, scale, 64, address(&data, &stream), &[factor, 64]).expect("it is right");
    }
    let graph = stream.end_capture(FLAGS).expect("it is right").expect("it has work");
    assert_eq!(stream.clone_dtoh(&data).expect("it is there"), [1; 64], "recording executes nothing");
    graph.upload().expect("it is right");
    for _ in 0..3 {
        graph.launch().expect("it is right");
    }
    assert_eq!(stream.clone_dtoh(&data).expect("it is there"), [216; 64]);
}

#[test]
fn other_streams_take_part_through_events() {
    let _alone = ALONE.lock().expect("no test failed");
    let context = context(OTHER);
    // SAFETY: the test orders its streams itself.
    unsafe { context.disable_event_tracking() };
    let (origin, branch) = (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let module = Loaded::new(&context, SCALE).expect("it is right");
    let scale = module.function("scale").expect("it is there");
    let data = origin.clone_htod(&[1_u32; 64]).expect("it fits");
    origin.synchronize().expect("nothing failed");
    let record = |joined: bool| {
        origin.begin_capture(MODE).expect("nothing is captured");
        launch(&origin, scale, 64, address(&data, &origin), &[2, 64]).expect("it is right");
        branch.join(&origin).expect("it takes part");
        launch(&branch, scale, 64, address(&data, &branch), &[5, 64]).expect("it is right");
        if joined {
            origin.join(&branch).expect("it takes part");
        }
        origin.end_capture(FLAGS)
    };
    assert_eq!(code(record(false)), Code::CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    let graph = record(true).expect("it is right").expect("it has work");
    graph.launch().expect("it is right");
    assert_eq!(origin.clone_dtoh(&data).expect("it is there"), [10; 64]);
}

#[test]
fn what_graphs_cannot_hold_ends_the_capture() {
    let _alone = ALONE.lock().expect("no test failed");
    let context = context(OTHER);
    // SAFETY: the test orders its streams itself.
    unsafe { context.disable_event_tracking() };
    let (stream, other) = (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let begin = || stream.begin_capture(MODE).expect("nothing is captured");
    assert_eq!(code(stream.end_capture(FLAGS)), Code::CUDA_ERROR_ILLEGAL_STATE);
    // Waiting.
    begin();
    assert_eq!(code(stream.begin_capture(MODE)), Code::CUDA_ERROR_ILLEGAL_STATE);
    assert_eq!(code(stream.synchronize()), Code::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(
        stream.capture_status().expect("it is known"),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_INVALIDATED
    );
    assert_eq!(code(stream.end_capture(FLAGS)), Code::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // Waiting for what is not recorded.
    let outside = other.record_event(None).expect("an event");
    begin();
    assert_eq!(code(stream.wait(&outside)), Code::CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    assert_eq!(code(stream.end_capture(FLAGS)), Code::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    // Memory that anybody may change before the graph is launched.
    let mut data = stream.alloc_zeros::<u32>(4).expect("it fits");
    begin();
    assert_eq!(code(stream.memcpy_htod(&[1; 4], &mut data)), Code::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    stream.end_capture(FLAGS).expect("nothing was recorded");
    stream.synchronize().expect("the stream goes on");
}
