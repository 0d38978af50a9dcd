// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Adaptively refined mesh: irregular nested work, as Thibault 2005 announces for its applications.
//
// A square is covered by coarse blocks; where a moving front passes, blocks are split into four, again and
// again. A block has always the same number of cells, but fine cells need short time steps, so that a block
// of level l costs 2^l times a coarse one. Each split block opens a team for its four children: regions
// nest as deep as the mesh is refined, and where they nest changes with time. No thread count fits that;
// whoever schedules the members must balance them.
//
//   amr [coarse-blocks-per-side levels steps]
#include <omp.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

constexpr int kCells = 16;  // cells per side of a block

/// The front: a circle that moves along the diagonal, and the temperature around it.
double front(double x, double y, double time) {
  double dx = x - 0.3 - 0.4 * time, dy = y - 0.35 - 0.3 * time;
  return std::sqrt(dx * dx + dy * dy) - 0.22;
}

double temperature(double x, double y, double time) { return std::tanh(-40 * front(x, y, time)); }

struct Block {
  double x, y, size;
  int level;
  std::array<std::unique_ptr<Block>, 4> child;
  std::vector<double> cell;
  double total = 0;  // integral of the temperature over the block, after the last step

  Block(double bx, double by, double bsize, int blevel)
      : x(bx), y(by), size(bsize), level(blevel) {}
  bool split() const { return child[0] != nullptr; }
};

bool crosses_front(const Block& block, double time) {
  double distance = std::fabs(front(block.x + block.size / 2, block.y + block.size / 2, time));
  return distance < block.size;
}

/// Splits and joins blocks for the front's place at `time`.
void adapt(Block& block, int levels, double time) {
  if (block.level < levels && crosses_front(block, time)) {
    double half = block.size / 2;
    if (!block.split())
      for (int i = 0; i < 4; ++i)
        block.child[i] = std::make_unique<Block>(block.x + (i % 2) * half, block.y + (i / 2) * half,
                                                 half, block.level + 1);
    block.cell.clear();
    for (auto& child : block.child) adapt(*child, levels, time);
  } else {
    for (auto& child : block.child) child.reset();
  }
}

/// Diffuses one leaf over a step in 2^level sub-steps, its border held at the known temperature.
void advance_leaf(Block& block, double time, double step) {
  constexpr int kPitch = kCells + 2;
  double h = block.size / kCells;
  int substeps = 4 << block.level;
  std::vector<double> now(kPitch * kPitch), next(kPitch * kPitch);
  for (int j = 0; j < kPitch; ++j)
    for (int i = 0; i < kPitch; ++i)
      now[j * kPitch + i] = temperature(block.x + (i - 0.5) * h, block.y + (j - 0.5) * h, time);
  next = now;
  for (int s = 0; s < substeps; ++s) {
    for (int j = 1; j <= kCells; ++j)
      for (int i = 1; i <= kCells; ++i) {
        const double* c = &now[j * kPitch + i];
        next[j * kPitch + i] =
            c[0] + 0.2 * step * (c[-1] + c[1] + c[-kPitch] + c[kPitch] - 4 * c[0]);
      }
    std::swap(now, next);
  }
  double sum = 0;
  block.cell.assign(kCells * kCells, 0);
  for (int j = 0; j < kCells; ++j)
    for (int i = 0; i < kCells; ++i) {
      block.cell[j * kCells + i] = now[(j + 1) * kPitch + i + 1];
      sum += block.cell[j * kCells + i];
    }
  block.total = sum * h * h;
}

void advance(Block& block, double time, double step, bool parallel) {
  if (!block.split()) {
    advance_leaf(block, time, step);
    return;
  }
#pragma omp parallel for num_threads(4) schedule(dynamic, 1) if (parallel)
  for (int i = 0; i < 4; ++i) advance(*block.child[i], time, step, parallel);
  // In a fixed order, so that the sum does not depend on who was first.
  block.total = 0;
  for (auto& child : block.child) block.total += child->total;
}

long leaves(const Block& block) {
  if (!block.split()) return 1;
  long count = 0;
  for (auto& child : block.child) count += leaves(*child);
  return count;
}

struct Result {
  double checksum = 0;
  double seconds = 0;
  long blocks = 0;
};

Result run(int side, int levels, int steps, bool parallel) {
  std::vector<std::unique_ptr<Block>> coarse;
  for (int j = 0; j < side; ++j)
    for (int i = 0; i < side; ++i)
      coarse.push_back(std::make_unique<Block>(double(i) / side, double(j) / side, 1.0 / side, 0));
  int count = int(coarse.size());
  Result result;
  double start = omp_get_wtime();
  for (int s = 0; s < steps; ++s) {
    double time = double(s) / steps;
#pragma omp parallel for num_threads(side) schedule(dynamic, 1) if (parallel)
    for (int i = 0; i < count; ++i) {
      adapt(*coarse[i], levels, time);
      advance(*coarse[i], time, 0.9, parallel);
    }
    for (auto& block : coarse) {
      result.checksum += block->total * (s + 1);
      result.blocks += leaves(*block);
    }
  }
  result.seconds = omp_get_wtime() - start;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  int side = argc > 1 ? std::atoi(argv[1]) : 6;
  int levels = argc > 2 ? std::atoi(argv[2]) : 4;
  int steps = argc > 3 ? std::atoi(argv[3]) : 30;
  if (side < 1 || levels < 0 || levels > 10 || steps < 1) {
    std::fprintf(stderr, "usage: amr [coarse-blocks-per-side levels steps]   levels 0..10\n");
    return 2;
  }
  omp_set_max_active_levels(levels + 2);
  Result nested = run(side, levels, steps, true);
  Result sequential = run(side, levels, steps, false);
  std::printf("%d x %d coarse blocks, %d levels, %d steps, %ld leaves advanced\n", side, side,
              levels, steps, nested.blocks);
  std::printf("checksum: %.12e\n", nested.checksum);
  std::printf("time: %.3f s\n", nested.seconds);
  if (nested.blocks != sequential.blocks || nested.checksum != sequential.checksum) {
    std::printf("amr: checksum %.17g over %ld leaves, the sequential run gives %.17g over %ld\n",
                nested.checksum, nested.blocks, sequential.checksum, sequential.blocks);
    return 1;
  }
  return 0;
}
