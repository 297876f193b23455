//! Functions that programs may look up, but that have no meaning here: each says that it is not supported.

use super::export;
use crate::code::Code;

/// Exports functions that do nothing. Their arguments are not looked at, which the calling convention allows.
macro_rules! refuse {
    ($($name:ident)*) => {
        export! { $($name() |_driver| { Err(Code::NotSupported) })* }
    };
}

refuse! {
    cuCtxCreate_v4
    cuCtxSetFlags
    cuDestroyExternalMemory
    cuDeviceSetMemPool
    cuExternalMemoryGetMappedBuffer
    cuImportExternalMemory
    cuMemAdvise_v2
    cuMemAllocManaged
    cuMemPoolCreate
    cuMemPoolDestroy
    cuMemPoolGetAttribute
    cuMemPrefetchAsync_v2
    cuOccupancyAvailableDynamicSMemPerBlock
    cuOccupancyMaxActiveBlocksPerMultiprocessor
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    cuOccupancyMaxActiveClusters
    cuOccupancyMaxPotentialBlockSize
    cuOccupancyMaxPotentialBlockSizeWithFlags
    cuOccupancyMaxPotentialClusterSize
    cuStreamAttachMemAsync
}
