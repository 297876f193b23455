//! `ldmatrix`, `stmatrix` and `movmatrix`: matrices of 8×8 elements of 16 bits.

use crate::exec::lanes::WARP;
use crate::exec::op::{MatrixMove, NONE, Slot};
use crate::exec::resolve::Location;
use crate::exec::run::{Exec, Next};
use crate::report::{Addresses, FaultKind};

/// Bytes of a row of a matrix.
const ROW: usize = 16;

impl Exec<'_> {
    /// Whether all lanes of the warp execute an instruction of the whole warp; reports it if not.
    pub(crate) fn whole_warp(&mut self, mask: u32) -> bool {
        if mask == u32::MAX {
            return true;
        }
        let lane = mask.trailing_zeros() as usize;
        self.fault(FaultKind::WarpSync, lane, 3, None, || {
            format!("an instruction of a whole warp is executed by lanes {mask:#010x} only")
        });
        false
    }

    /// `ldmatrix` and `stmatrix`. Lane `8·i + r` has the address of row `r` of matrix `i`.
    pub(crate) fn move_matrices(&mut self, moved: &MatrixMove, mask: u32) -> Next {
        if !self.whole_warp(mask) {
            return Next::Follow;
        }
        let count = moved.registers.len();
        let with_address = if count == 4 { u32::MAX } else { (1 << (8 * count)) - 1 };
        self.need_defined(moved.base, with_address);
        let bases = *self.value(moved.base);
        for (matrix, register) in moved.registers.iter().enumerate() {
            let mut rows = [None; 8];
            let mut seen = Addresses::new();
            for (row, place) in rows.iter_mut().enumerate() {
                let lane = matrix * 8 + row;
                let address = bases[lane].wrapping_add_signed(moved.offset);
                *place = self.shared_place(moved.window, address, ROW as u64, lane, moved.stores);
                if let Some(at) = place {
                    seen.push(*at as u64);
                }
            }
            self.grid.traffic.shared(self.line, &seen, ROW as u64);
            if moved.stores {
                self.store_matrix(moved, *register, matrix, rows);
            } else {
                self.load_matrix(moved, *register, matrix, rows);
            }
        }
        Next::Follow
    }

    /// `movmatrix`
    pub(crate) fn transpose_matrix(&mut self, to: Slot, from: Slot, mask: u32) -> Next {
        if !self.whole_warp(mask) {
            return Next::Follow;
        }
        self.need_defined(from, mask);
        let held = *self.value(from);
        // A lane holds two neighbours of a row.
        let element = |row: usize, column: usize| held[4 * row + column / 2] >> (16 * (column % 2)) & 0xffff;
        let mut values = [0; WARP];
        for (lane, value) in values.iter_mut().enumerate() {
            let (row, pair) = (lane / 4, 2 * (lane % 4));
            *value = element(pair, row) | element(pair + 1, row) << 16;
        }
        self.set(to, mask, mask, &values);
        Next::Follow
    }

    fn load_matrix(&mut self, moved: &MatrixMove, register: u32, matrix: usize, rows: [Option<usize>; 8]) {
        let mut data = [[0; ROW]; 8];
        for (row, at) in rows.into_iter().enumerate() {
            let Some(at) = at else { continue };
            self.check_read(Location::Shared(at), ROW, 1 << (matrix * 8 + row), false);
            data[row].copy_from_slice(self.bytes(Location::Shared(at), ROW));
        }
        if register == NONE {
            return;
        }
        let element = |row: usize, column: usize| {
            u64::from(u16::from_le_bytes([data[row][2 * column], data[row][2 * column + 1]]))
        };
        let mut values = [0; WARP];
        for (lane, value) in values.iter_mut().enumerate() {
            let (row, pair) = (lane / 4, 2 * (lane % 4));
            *value = if moved.transposed {
                element(pair, row) | element(pair + 1, row) << 16
            } else {
                element(row, pair) | element(row, pair + 1) << 16
            };
        }
        self.set(register, u32::MAX, u32::MAX, &values);
    }

    fn store_matrix(&mut self, moved: &MatrixMove, register: u32, matrix: usize, rows: [Option<usize>; 8]) {
        self.need_defined(register, u32::MAX);
        let mut data = [[0; ROW]; 8];
        for (lane, value) in self.value(register).iter().enumerate() {
            let (row, pair) = (lane / 4, 2 * (lane % 4));
            for half in 0..2 {
                let bytes = ((value >> (16 * half)) as u16).to_le_bytes();
                let (row, column) = if moved.transposed { (pair + half, row) } else { (row, pair + half) };
                data[row][2 * column..2 * column + 2].copy_from_slice(&bytes);
            }
        }
        for (row, at) in rows.into_iter().enumerate() {
            let Some(at) = at else { continue };
            self.write(Location::Shared(at), &data[row], matrix * 8 + row, false);
        }
    }
}
