"""Tensor encodings: float rows to GGUF blocks and back, vectorised over blocks.

The encoders minimise sum w * (x - decoded)^2 per block. They try many starting scales, refit scale (and minimum) by
least squares to the rounded values, store the scales in the few bits the format has, try the neighbours of every stored
scale, and round the weights once more under the scales that the decoder will see.

Inside the fitters the blocks lie in the LAST axis: shape (elements of a sub-block, sub-blocks, blocks). Every sum over
a block is then an addition of long contiguous rows, which numpy does at full speed.
"""

import functools

import numpy as np

from nano.gguf import TENSOR_TYPES

HALF_MAX = 65504.0
CODEBOOK = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
CHUNK_ELEMENTS = 1 << 16  # a few arrays of this size stay in a core's cache
DECODE_CHUNK_BLOCKS = 1 << 14
PAIR_MOVES = (0, -1, 1, -2, 2, -3, 3, -4, 4)
MULTIPLE_MOVES = (0, -1, 1, -2, 2)
SINGULAR = 1e-5
IMPORTANCE_FLOOR = 1e-4  # of the mean of the row: a column that calibration never excited still has to be stored


# -------------------------------------------------------------------------------------------------- small numeric tools


def half(values):
    """The float32 values that survive storage as a finite IEEE half."""
    return np.clip(values, -HALF_MAX, HALF_MAX).astype(np.float16).astype(np.float32)


def inverse(values):
    """1 / values, and 0 where the value is 0 or so small that its inverse overflows."""
    usable = np.abs(values) > 1e-37
    return np.where(usable, 1.0 / np.where(usable, values, 1.0), 0.0).astype(np.float32)


def ratio(top, bottom):
    return top * inverse(bottom)


def dot(left, right):
    """Sums over the elements of each sub-block."""
    return np.einsum("e...,e...->...", left, right)


class UniformLevels:
    """The consecutive integers low..high."""

    def __init__(self, low, high):
        self.low = low
        self.high = high

    def snap(self, values):
        """Rounds to the nearest level, in place."""
        np.rint(values, out=values)
        return np.clip(values, self.low, self.high, out=values)

    def codes(self, levels):
        return (levels - self.low).astype(np.uint8)


class TableLevels:
    """The sixteen levels of the non-linear 4-bit code book."""

    low = int(CODEBOOK[0])
    high = int(CODEBOOK[-1])

    def __init__(self):
        # All midpoints between neighbours are multiples of one half, so a table of half steps decides exactly.
        half_steps = (np.arange(2 * self.low, 2 * self.high + 1) + 0.5) / 2
        self.nearest = CODEBOOK[np.abs(half_steps[:, None] - CODEBOOK[None, :]).argmin(1)]
        self.code_of = np.zeros(self.high - self.low + 1, np.uint8)
        self.code_of[CODEBOOK.astype(int) - self.low] = np.arange(len(CODEBOOK))

    def snap(self, values):
        values *= 2
        np.clip(values, 2 * self.low, 2 * self.high, out=values)
        np.floor(values, out=values)
        return self.nearest[values.astype(np.int16) - 2 * self.low]

    def codes(self, levels):
        return self.code_of[levels.astype(np.int16) - self.low]


class Blocks:
    """Weights x of shape (elements, sub-blocks, blocks) and the root of their importance, None where all is one."""

    def __init__(self, x, root):
        self.x = x
        self.root = root
        self.weighted = x if root is None else x * root

    def scaled(self, levels):
        return levels if self.root is None else levels * self.root

    def measure(self, grid, scale):
        """Rounds x / scale to the grid. Returns the levels, the error, and the error's slope and curvature in scale."""
        levels = grid.snap(self.x * inverse(scale))
        basis = self.scaled(levels)
        rest = self.weighted - scale * basis
        return levels, dot(rest, rest), dot(rest, basis), dot(basis, basis)


# --------------------------------------------------------------------------------------------- fits: x = scale * level


def fit_scale(blocks, grid, divisors, rounds):
    """The best scale per sub-block: the peak divided by each candidate, refitted, then refined by alternation."""
    peak = np.take_along_axis(blocks.x, np.abs(blocks.x).argmax(0)[None], 0)[0]
    best_scale = peak / np.float32(divisors[0])
    if len(divisors) > 1:
        best_error = np.full(peak.shape, np.inf, np.float32)
        for divisor in divisors:
            scale = peak / np.float32(divisor)
            _, error, slope, curvature = blocks.measure(grid, scale)
            step = ratio(slope, curvature)
            error -= slope * step
            better = error < best_error
            best_error = np.where(better, error, best_error)
            best_scale = np.where(better, scale + step, best_scale)
    for _ in range(rounds):
        _, _, slope, curvature = blocks.measure(grid, best_scale)
        best_scale = best_scale + ratio(slope, curvature)
    return best_scale


def fit_unit(scales, curvature, divisors, low, high):
    """The stored half d such that integers low..high times d come nearest to the scales of each block."""
    peak = np.take_along_axis(scales, np.abs(scales).argmax(0)[None], 0)[0]
    best_unit = half(peak / np.float32(divisors[0]))
    best_cost = np.full(peak.shape, np.inf, np.float32)
    for divisor in divisors:
        unit = half(peak / np.float32(divisor))
        miss = scales - unit * np.clip(np.rint(scales * inverse(unit)), low, high)
        cost = (curvature * miss * miss).sum(0)
        better = cost < best_cost
        best_cost = np.where(better, cost, best_cost)
        best_unit = np.where(better, unit, best_unit)
    return best_unit


def best_multiples(blocks, grid, unit, multiples, low, high):
    """Moves every sub-block's integer scale to the neighbour that, with the weights rounded anew, errs least."""
    best = multiples
    best_error = np.full(multiples.shape, np.inf, np.float32)
    for move in MULTIPLE_MOVES:
        trial = np.clip(multiples + move, low, high)
        _, error, _, _ = blocks.measure(grid, unit * trial)
        better = error < best_error
        best_error = np.where(better, error, best_error)
        best = np.where(better, trial, best)
    return best


def refit_unit(blocks, grid, unit, multiples):
    """Least squares for the block's half d with everything else fixed; kept only where the error falls."""
    _, error, slope, curvature = blocks.measure(grid, unit * multiples)
    step = ratio((slope * multiples).sum(0), (curvature * multiples * multiples).sum(0))
    trial = half(unit + step)
    _, trial_error, _, _ = blocks.measure(grid, trial * multiples)
    return np.where(trial_error.sum(0) < error.sum(0), trial, unit)


def spread(limit, low, high, count):
    """`count` divisors around a level limit, from the coarse (nothing clips) to the fine (the peak clips)."""
    return [limit * factor for factor in np.linspace(low, high, count)]


def divisors_for(grid, search):
    """Candidate divisors of the peak.

    With few levels the best scale clips the peak or leaves room above it, so the reach is wide. With many levels
    clipping never pays; what is left is a jagged error around the plain scale, whose lowest tooth lies nearby.
    """
    if not search:
        return [grid.low]
    count = 16 if isinstance(grid, TableLevels) else grid.high - grid.low + 1
    reach = min(0.5, 16 / count)
    tries = 40
    found = [float(grid.low)] + spread(grid.low, 1 - reach, 1 + reach, tries)
    if grid.low != -grid.high:
        found += spread(grid.high, 1 - reach, 1 + reach, tries)
    return found


def fit_single(blocks, grid, search):
    """Formats of one half scale per block. Returns (d, codes)."""
    rounds = 4 if search else 0
    scale = fit_scale(blocks, grid, divisors_for(grid, search), rounds)
    unit = half(scale)
    return unit[0], grid.codes(grid.snap(blocks.x * inverse(unit)))


def fit_multiples(blocks, grid, low, high, search):
    """Formats of a half d per block and integer sub-block scales low..high. Returns (d, integers, codes)."""
    scales = fit_scale(blocks, grid, divisors_for(grid, search), 3 if search else 0)
    if search:
        _, _, _, curvature = blocks.measure(grid, scales)
        steps = np.arange(0, 10) if high < 100 else np.arange(0, 40, 8)
        divisors = [side * (limit - step) for side, limit in ((-1, -low), (1, high)) for step in steps]
    else:
        curvature = np.ones_like(scales)
        divisors = [low]
    unit = fit_unit(scales, curvature, divisors, low, high)
    multiples = np.clip(np.rint(scales * inverse(unit)), low, high)
    for _ in range(3 if search else 0):
        multiples = best_multiples(blocks, grid, unit, multiples, low, high)
        unit = refit_unit(blocks, grid, unit, multiples)
    levels = grid.snap(blocks.x * inverse(unit * multiples))
    return unit, multiples, grid.codes(levels)


# -------------------------------------------------------------------------------- fits: x = scale * level - offset


class AffineFit:
    """Least squares for x = scale * level - offset, levels 0..top; with `one_sided` the offset is never negative."""

    def __init__(self, blocks, top, one_sided):
        self.blocks = blocks
        self.grid = UniformLevels(0, top)
        self.top = top
        self.one_sided = one_sided
        ones = np.ones_like(blocks.x) if blocks.root is None else blocks.root
        self.ones = ones
        self.mass = dot(ones, ones)

    def measure(self, scale, offset):
        """Rounds, and returns the weighted levels, the weighted remainder and its square sum."""
        blocks = self.blocks
        levels = self.grid.snap((blocks.x + offset) * inverse(scale))
        basis = blocks.scaled(levels)
        rest = blocks.weighted - scale * basis
        rest += offset if blocks.root is None else offset * blocks.root
        return basis, rest, dot(rest, rest)

    def error(self, scale, offset):
        return self.measure(scale, offset)[2]

    def refit(self, scale, offset):
        """One rounding and one solution of the normal equations. Returns (scale, offset, error after the solution)."""
        basis, rest, error = self.measure(scale, offset)
        square, total = dot(basis, basis), dot(basis, self.ones)
        pull, drift = dot(rest, basis), dot(rest, self.ones)
        determinant = square * self.mass - total * total
        # With all levels equal the pair is not determined and the difference above is rounding noise: stay.
        determinant = np.where(determinant > SINGULAR * square * self.mass, determinant, 0)
        spread_inverse = inverse(determinant)
        d_scale = (self.mass * pull - total * drift) * spread_inverse
        d_offset = (total * pull - square * drift) * spread_inverse
        if self.one_sided:
            negative = offset + d_offset < 0
            d_offset = np.where(negative, -offset, d_offset)
            d_scale = np.where(negative, ratio(pull + total * d_offset, square), d_scale)
        gain = 2 * (d_scale * pull - d_offset * drift)
        cost = d_scale * d_scale * square - 2 * d_scale * d_offset * total + d_offset * d_offset * self.mass
        return scale + d_scale, offset + d_offset, error - gain + cost

    def range_fit(self, cut_low=0.0, cut_high=0.0):
        """Scale and offset that put the ends of the range, cut by a fraction at each side, on the outer levels."""
        lowest, highest = self.blocks.x.min(0), self.blocks.x.max(0)
        width = highest - lowest
        lowest = lowest + np.float32(cut_low) * width
        highest = highest - np.float32(cut_high) * width
        if self.one_sided:
            lowest = np.minimum(lowest, 0)
            highest = np.maximum(highest, lowest)
        return (highest - lowest) / np.float32(self.top), -lowest

    def search(self):
        """The best unrestricted pair per sub-block."""
        cuts = np.linspace(-0.5, 2.1, 9) / self.top if self.one_sided else np.linspace(-1, 4, 15) / self.top
        best = None
        for cut_low in cuts:
            for cut_high in cuts:
                scale, offset, error = self.refit(*self.range_fit(cut_low, cut_high))
                best = keep_best(best, (error, scale, offset))
        for _ in range(3):
            scale, offset, _ = self.refit(best[1], best[2])
            best = (best[0], scale, offset)
        return best[1], best[2]


def keep_best(best, trial):
    """Elementwise: the tuple of arrays whose first member, the error, is lower."""
    if best is None:
        return trial
    better = trial[0] < best[0]
    return tuple(np.where(better, new, old) for new, old in zip(trial, best))


def fit_affine(blocks, top, search):
    """Formats of a half scale and a half minimum per block. Returns (d, minimum, codes)."""
    fit = AffineFit(blocks, top, one_sided=False)
    scale, offset = fit.search() if search else fit.range_fit()
    scale, offset = half(scale), half(offset)
    return scale[0], -offset[0], fit.grid.codes(fit.grid.snap((blocks.x + offset) * inverse(scale)))


def refit_units(fit, unit, sub_unit, scales, offsets):
    """Least squares for both halves of a block at once, kept only where the error falls."""
    basis, rest, error = fit.measure(unit * scales, sub_unit * offsets)
    square = (scales * scales * dot(basis, basis)).sum(0)
    cross = (scales * offsets * dot(basis, fit.ones)).sum(0)
    mass = (offsets * offsets * fit.mass).sum(0)
    pull = (scales * dot(rest, basis)).sum(0)
    drift = (offsets * dot(rest, fit.ones)).sum(0)
    determinant = inverse(square * mass - cross * cross)
    trial_unit = half(unit + (mass * pull - cross * drift) * determinant)
    trial_sub = half(sub_unit + (cross * pull - square * drift) * determinant)
    trial_error = fit.error(trial_unit * scales, trial_sub * offsets)
    better = trial_error.sum(0) < error.sum(0)
    return np.where(better, trial_unit, unit), np.where(better, trial_sub, sub_unit)


def best_pairs(fit, unit, sub_unit, scales, offsets):
    """Moves each sub-block's integer pair to the neighbouring pair that, with the weights rounded anew, errs least."""
    best = None
    for scale_move in PAIR_MOVES:
        for offset_move in PAIR_MOVES:
            trial_scales = np.clip(scales + scale_move, 0, 63)
            trial_offsets = np.clip(offsets + offset_move, 0, 63)
            error = fit.error(unit * trial_scales, sub_unit * trial_offsets)
            best = keep_best(best, (error, trial_scales, trial_offsets))
    return best[1], best[2]


def fit_affine_multiples(blocks, top, search):
    """Q4_K and Q5_K: halves d and dmin per block, 6-bit scale and minimum per sub-block, levels 0..top."""
    fit = AffineFit(blocks, top, one_sided=True)
    scales, offsets = fit.search() if search else fit.range_fit()
    divisors = np.arange(63, 51, -1) if search else [63]
    basis, _, _ = fit.measure(scales, offsets)
    total = dot(basis, fit.ones)
    # The offset can follow a change of the scale, so only the spread of the levels makes a scale error cost anything.
    stiffness = dot(basis, basis) - total * ratio(total, fit.mass)
    unit = fit_unit(scales, stiffness, divisors, 0, 63)
    whole_scales = np.clip(np.rint(scales * inverse(unit)), 0, 63)
    if search:
        shift = (unit * whole_scales - scales) * ratio(total, fit.mass)
        offsets = np.maximum(offsets + shift, 0)
    sub_unit = fit_unit(offsets, fit.mass, divisors, 0, 63)
    whole_offsets = np.clip(np.rint(offsets * inverse(sub_unit)), 0, 63)
    for _ in range(2 if search else 0):
        whole_scales, whole_offsets = best_pairs(fit, unit, sub_unit, whole_scales, whole_offsets)
        unit, sub_unit = refit_units(fit, unit, sub_unit, whole_scales, whole_offsets)
    levels = fit.grid.snap((blocks.x + sub_unit * whole_offsets) * inverse(unit * whole_scales))
    return unit, sub_unit, whole_scales, whole_offsets, fit.grid.codes(levels)


# ------------------------------------------------------------------------------------------------------- bit packing


def half_bytes(values):
    """Shape (n, 2): the stored bytes of n halves."""
    return values.astype("<f2").view(np.uint8).reshape(-1, 2)


def half_at(raw, offset):
    """Shape (n, 1): the half at a byte offset of each block, as float32."""
    return np.ascontiguousarray(raw[:, offset:offset + 2]).view("<f2").astype(np.float32)


def in_order(fitted):
    """From the fitters' (elements, sub-blocks, blocks) to (blocks, sub-blocks, elements)."""
    return np.ascontiguousarray(fitted.transpose(2, 1, 0))


def integers(fitted):
    """From the fitters' (sub-blocks, blocks) floats to (blocks, sub-blocks) integers."""
    return fitted.T.astype(np.int16)


def join_halves(codes):
    """Nibbles of 2n elements in n bytes: first half low, second half high. Works on the last axis."""
    middle = codes.shape[-1] // 2
    return (codes[..., :middle] & 15) | (codes[..., middle:] & 15) << 4


def split_halves(raw):
    return np.concatenate([raw & 15, raw >> 4], -1)


def join_bits(bits, axis):
    """Eight (or 32) flags along an axis into bytes, first flag lowest."""
    return np.packbits(bits.astype(np.uint8), axis=axis, bitorder="little")


def split_bits(raw, axis):
    return np.unpackbits(raw, axis=axis, bitorder="little")


def join_pairs(codes):
    """Shape (n, 2, 4, 32) of 2-bit values to (n, 64): the four groups of 32 share their bytes."""
    return (codes[:, :, 0] | codes[:, :, 1] << 2 | codes[:, :, 2] << 4 | codes[:, :, 3] << 6).reshape(-1, 64)


def split_pairs(raw):
    raw = raw.reshape(-1, 2, 1, 32)
    return raw >> np.array([0, 2, 4, 6], np.uint8).reshape(1, 1, 4, 1) & 3


def join_pair_scales(scales, offsets):
    """The 12 bytes of eight 6-bit scales and eight 6-bit minima."""
    scales, offsets = scales.astype(np.uint8), offsets.astype(np.uint8)
    return np.concatenate([
        scales[:, :4] | scales[:, 4:] >> 4 << 6,
        offsets[:, :4] | offsets[:, 4:] >> 4 << 6,
        scales[:, 4:] & 15 | (offsets[:, 4:] & 15) << 4,
    ], 1)


def split_pair_scales(raw):
    first, second, third = raw[:, :4], raw[:, 4:8], raw[:, 8:12]
    scales = np.concatenate([first & 63, third & 15 | first >> 6 << 4], 1)
    offsets = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], 1)
    return scales, offsets


def join_16_scales(scales):
    """Q3_K: sixteen 6-bit scales in 12 bytes."""
    stored = (scales + 32).astype(np.uint8)
    low = stored[:, :8] & 15 | (stored[:, 8:] & 15) << 4
    high = (stored >> 4).reshape(-1, 4, 4)
    return np.concatenate([low, high[:, 0] | high[:, 1] << 2 | high[:, 2] << 4 | high[:, 3] << 6], 1)


def split_16_scales(raw):
    low = np.concatenate([raw[:, :8] & 15, raw[:, :8] >> 4], 1)
    high = np.concatenate([raw[:, 8:12] >> shift & 3 for shift in (0, 2, 4, 6)], 1)
    return (low | high << 4).astype(np.int16) - 32


# --------------------------------------------------------------------------------------- the formats, encode and decode


@functools.cache
def code_book():
    return TableLevels()


def encode_q8_0(blocks, search):
    d, codes = fit_single(blocks, UniformLevels(-127, 127), search)
    signed = in_order(codes)[:, 0].astype(np.int16) - 127
    return np.concatenate([half_bytes(d), signed.astype(np.int8).view(np.uint8)], 1)


def decode_q8_0(raw):
    return half_at(raw, 0) * raw[:, 2:].view(np.int8)


def encode_q4_0(blocks, search):
    d, codes = fit_single(blocks, UniformLevels(-8, 7), search)
    return np.concatenate([half_bytes(d), join_halves(in_order(codes)[:, 0])], 1)


def decode_q4_0(raw):
    return half_at(raw, 0) * (split_halves(raw[:, 2:]).astype(np.float32) - 8)


def encode_q5_0(blocks, search):
    d, codes = fit_single(blocks, UniformLevels(-16, 15), search)
    codes = in_order(codes)[:, 0]
    return np.concatenate([half_bytes(d), join_bits(codes >> 4, 1), join_halves(codes)], 1)


def decode_q5_0(raw):
    codes = split_halves(raw[:, 6:]) | split_bits(raw[:, 2:6], 1) << 4
    return half_at(raw, 0) * (codes.astype(np.float32) - 16)


def encode_q5_1(blocks, search):
    d, minimum, codes = fit_affine(blocks, 31, search)
    codes = in_order(codes)[:, 0]
    return np.concatenate([half_bytes(d), half_bytes(minimum), join_bits(codes >> 4, 1), join_halves(codes)], 1)


def decode_q5_1(raw):
    codes = split_halves(raw[:, 8:]) | split_bits(raw[:, 4:8], 1) << 4
    return half_at(raw, 0) * codes + half_at(raw, 2)


def encode_iq4_nl(blocks, search):
    d, codes = fit_single(blocks, code_book(), search)
    return np.concatenate([half_bytes(d), join_halves(in_order(codes)[:, 0])], 1)


def decode_iq4_nl(raw):
    return half_at(raw, 0) * CODEBOOK[split_halves(raw[:, 2:])]


def encode_iq4_xs(blocks, search):
    d, scales, codes = fit_multiples(blocks, code_book(), -32, 31, search)
    stored = (integers(scales) + 32).astype(np.uint16)
    high = ((stored >> 4) << (2 * np.arange(8, dtype=np.uint16))).sum(1).astype("<u2").view(np.uint8).reshape(-1, 2)
    low = (stored[:, 0::2] & 15 | (stored[:, 1::2] & 15) << 4).astype(np.uint8)
    return np.concatenate([half_bytes(d), high, low, join_halves(in_order(codes)).reshape(-1, 128)], 1)


def decode_iq4_xs(raw):
    high = np.ascontiguousarray(raw[:, 2:4]).view("<u2") >> (2 * np.arange(8, dtype=np.uint16)) & 3
    low = np.stack([raw[:, 4:8] & 15, raw[:, 4:8] >> 4], -1).reshape(-1, 8)
    scales = half_at(raw, 0) * ((low | high << 4).astype(np.float32) - 32)
    return scales[:, :, None] * CODEBOOK[split_halves(raw[:, 8:].reshape(-1, 8, 16))]


def encode_q3_k(blocks, search):
    d, scales, codes = fit_multiples(blocks, UniformLevels(-4, 3), -32, 31, search)
    codes = in_order(codes).reshape(-1, 8, 32)
    mask = join_bits(codes >> 2, 1)[:, 0]
    return np.concatenate([mask, join_pairs(codes.reshape(-1, 2, 4, 32) & 3), join_16_scales(integers(scales)),
                           half_bytes(d)], 1)


def decode_q3_k(raw):
    low = split_pairs(raw[:, 32:96]).reshape(-1, 8, 32)
    codes = low | split_bits(raw[:, None, :32], 1) << 2
    scales = half_at(raw, 108) * split_16_scales(raw[:, 96:108])
    return scales[:, :, None] * (codes.reshape(-1, 16, 16).astype(np.float32) - 4)


def encode_q4_k(blocks, search):
    d, d_min, scales, offsets, codes = fit_affine_multiples(blocks, 15, search)
    nibbles = join_halves(in_order(codes).reshape(-1, 4, 64)).reshape(-1, 128)
    return np.concatenate([half_bytes(d), half_bytes(d_min), join_pair_scales(integers(scales), integers(offsets)),
                           nibbles], 1)


def affine_values(raw, codes):
    """Q4_K and Q5_K: codes (n, 8, 32) under the scales at the head of the block."""
    scales, offsets = split_pair_scales(raw[:, 4:16])
    return (half_at(raw, 0) * scales)[:, :, None] * codes - (half_at(raw, 2) * offsets)[:, :, None]


def decode_q4_k(raw):
    return affine_values(raw, split_halves(raw[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def encode_q5_k(blocks, search):
    d, d_min, scales, offsets, codes = fit_affine_multiples(blocks, 31, search)
    codes = in_order(codes)
    nibbles = join_halves(codes.reshape(-1, 4, 64)).reshape(-1, 128)
    return np.concatenate([half_bytes(d), half_bytes(d_min), join_pair_scales(integers(scales), integers(offsets)),
                           join_bits(codes >> 4, 1)[:, 0], nibbles], 1)


def decode_q5_k(raw):
    low = split_halves(raw[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    return affine_values(raw, low | split_bits(raw[:, None, 16:48], 1) << 4)


def encode_q6_k(blocks, search):
    d, scales, codes = fit_multiples(blocks, UniformLevels(-32, 31), -127, 127, search)
    codes = in_order(codes).reshape(-1, 2, 4, 32)
    low = join_halves(codes.reshape(-1, 2, 128)).reshape(-1, 128)
    return np.concatenate([low, join_pairs(codes >> 4), integers(scales).astype(np.int8).view(np.uint8),
                           half_bytes(d)], 1)


def decode_q6_k(raw):
    low = split_halves(raw[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    codes = (low | split_pairs(raw[:, 128:192]) << 4).reshape(-1, 16, 16)
    scales = half_at(raw, 208) * np.ascontiguousarray(raw[:, 192:208]).view(np.int8)
    return scales[:, :, None] * (codes.astype(np.float32) - 32)


# name: (elements of a sub-block, encoder, decoder)
BLOCK_FORMATS = {
    "Q8_0": (32, encode_q8_0, decode_q8_0),
    "Q4_0": (32, encode_q4_0, decode_q4_0),
    "Q5_0": (32, encode_q5_0, decode_q5_0),
    "Q5_1": (32, encode_q5_1, decode_q5_1),
    "IQ4_NL": (32, encode_iq4_nl, decode_iq4_nl),
    "IQ4_XS": (32, encode_iq4_xs, decode_iq4_xs),
    "Q3_K": (16, encode_q3_k, decode_q3_k),
    "Q4_K": (32, encode_q4_k, decode_q4_k),
    "Q5_K": (32, encode_q5_k, decode_q5_k),
    "Q6_K": (16, encode_q6_k, decode_q6_k),
}
FORMATS = ("F32", "F16", "BF16", *BLOCK_FORMATS)


def bits_per_weight(type_name):
    _, block_elems, block_bytes = TENSOR_TYPES[type_name]
    return 8 * block_bytes / block_elems


# -------------------------------------------------------------------------------------------------------- public calls


def encode_bf16(array):
    """Rounds to nearest even in the upper half of the bits; NaN stays NaN."""
    bits = array.view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(array), bits >> 16 | 0x40, rounded).astype("<u2").tobytes()


def importance_root(rows, weights, emphasis):
    """The square root of each weight's importance, same shape as rows, or None when all count alike."""
    if weights is None:
        return None
    mean = weights.mean(1, keepdims=True)
    importance = np.where(mean > 0, np.maximum(weights * inverse(mean), IMPORTANCE_FLOOR), 1)
    if emphasis:
        importance = importance * np.sqrt((rows * rows).mean(1, keepdims=True) + rows * rows)
    return np.sqrt(importance).astype(np.float32)


def to_blocks(flat, sub_elems, block_elems):
    """Whole blocks in file order to the fitters' (elements, sub-blocks, blocks)."""
    return np.ascontiguousarray(flat.reshape(-1, block_elems // sub_elems, sub_elems).transpose(2, 1, 0))


def normaliser(root):
    """Brings the importance of every block near one, so that sums of squares stay inside float32."""
    return root * inverse(np.sqrt((root * root).mean((0, 1), keepdims=True)))


def encode(type_name, array, weights=None, search=True, emphasis=True):
    """Encodes rows (the last axis is the row, a whole number of blocks) to the bytes of a GGUF tensor.

    weights   importance per column, e.g. the mean square of the activation that multiplies it: one vector for all
              rows, or anything that broadcasts to the array, such as (experts, 1, columns) for a stack of experts
    search    False for plain rounding: the peak sets the scale, nothing is refitted
    emphasis  with weights: also favour large weights, by sqrt(mean square of the row + x^2)
    """
    rows = np.ascontiguousarray(array, np.float32).reshape(-1, np.shape(array)[-1])
    if type_name in ("F32", "F16"):
        return rows.astype("<f4" if type_name == "F32" else "<f2").tobytes()
    if type_name == "BF16":
        return encode_bf16(rows)
    if type_name not in BLOCK_FORMATS:
        raise ValueError(f"no encoder for {type_name!r}")
    _, block_elems, _ = TENSOR_TYPES[type_name]
    if rows.shape[1] % block_elems:
        raise ValueError(f"row length {rows.shape[1]} is not a multiple of {block_elems}, the block of {type_name}")
    if not np.isfinite(rows).all():
        raise ValueError("a weight is not finite")
    if weights is not None:
        weights = np.asarray(weights, np.float32)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("importance weights must be finite and not negative")
        weights = np.broadcast_to(weights, np.shape(array)).reshape(rows.shape)
    sub_elems, encoder, _ = BLOCK_FORMATS[type_name]
    rows_at_once = max(1, CHUNK_ELEMENTS // rows.shape[1])
    parts = []
    for begin in range(0, len(rows), rows_at_once):
        chunk = rows[begin:begin + rows_at_once]
        chunk_weights = None if weights is None else weights[begin:begin + rows_at_once]
        root = importance_root(chunk, chunk_weights, emphasis)
        if root is not None:
            root = normaliser(to_blocks(root, sub_elems, block_elems))
        parts.append(encoder(Blocks(to_blocks(chunk, sub_elems, block_elems), root), search).tobytes())
    return b"".join(parts)


def decode(type_name, data, shape):
    """The float32 array of a numpy shape (row length last) that the bytes of a tensor stand for."""
    _, block_elems, block_bytes = TENSOR_TYPES[type_name]
    count = int(np.prod(shape))
    raw = np.frombuffer(data, np.uint8)
    if shape[-1] % block_elems or raw.size != count // block_elems * block_bytes:
        raise ValueError(f"{raw.size} bytes of {type_name} do not make an array of shape {tuple(shape)}")
    if type_name in ("F32", "F16"):
        return raw.view("<f4" if type_name == "F32" else "<f2").astype(np.float32).reshape(shape)
    if type_name == "BF16":
        return (raw.view("<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if type_name not in BLOCK_FORMATS:
        raise ValueError(f"no decoder for {type_name!r}")
    _, _, decoder = BLOCK_FORMATS[type_name]
    raw = raw.reshape(-1, block_bytes)
    values = np.empty((len(raw), block_elems), np.float32)
    for begin in range(0, len(raw), DECODE_CHUNK_BLOCKS):
        part = raw[begin:begin + DECODE_CHUNK_BLOCKS]
        values[begin:begin + len(part)] = decoder(part).reshape(len(part), block_elems)
    return values.reshape(shape)
