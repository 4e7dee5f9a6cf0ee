// ast.h  The syntax tree of a template. Nodes are plain structs told apart by `kind`; the parser bounds their
// depth.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace chimere::jinja {

using NameId = int;  // index into Program::names

// How a variable slot is filled when its scope is entered (see scopes.h).
enum class LoadKind : uint8_t { parameter, resolve, alias, undefined };
struct Slot {
  NameId name;
  LoadKind load;
};
struct ScopePlan {
  std::vector<Slot> slots;
};

enum class ExprKind : uint8_t {
  constant,
  name,
  list,
  tuple,
  dict,
  binary,
  unary,
  logical_and,
  logical_or,
  logical_not,
  concat,
  compare,
  conditional,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
};

struct Expr {
  Expr(ExprKind k, int l) : kind(k), line(l) {}
  virtual ~Expr() = default;
  ExprKind kind;
  int line;
  int height = 1;
};
using ExprPtr = std::unique_ptr<Expr>;

struct ConstantExpr : Expr {
  ConstantExpr(Value v, int l) : Expr(ExprKind::constant, l), value(std::move(v)) {}
  Value value;
};
struct NameExpr : Expr {
  NameExpr(NameId n, int l) : Expr(ExprKind::name, l), name(n) {}
  NameId name;
};
struct ListExpr : Expr {  // list and tuple
  using Expr::Expr;
  std::vector<ExprPtr> items;
};
struct DictExpr : Expr {
  explicit DictExpr(int l) : Expr(ExprKind::dict, l) {}
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
enum class BinaryOp : uint8_t { add, sub, mul, div, floor_div, mod, pow };
struct BinaryExpr : Expr {
  explicit BinaryExpr(int l) : Expr(ExprKind::binary, l) {}
  BinaryOp op = BinaryOp::add;
  ExprPtr left, right;
};
struct UnaryExpr : Expr {  // unary minus and plus, logical_not
  using Expr::Expr;
  bool negate = false;
  ExprPtr operand;
};
struct LogicalExpr : Expr {  // logical_and, logical_or
  using Expr::Expr;
  ExprPtr left, right;
};
struct ConcatExpr : Expr {
  explicit ConcatExpr(int l) : Expr(ExprKind::concat, l) {}
  std::vector<ExprPtr> parts;
};
enum class CompareOp : uint8_t { eq, ne, lt, le, gt, ge, in, not_in };
struct CompareExpr : Expr {
  explicit CompareExpr(int l) : Expr(ExprKind::compare, l) {}
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct ConditionalExpr : Expr {
  explicit ConditionalExpr(int l) : Expr(ExprKind::conditional, l) {}
  ExprPtr condition, then, otherwise;  // otherwise may be null
};
struct AttributeExpr : Expr {
  explicit AttributeExpr(int l) : Expr(ExprKind::attribute, l) {}
  ExprPtr object;
  std::string name;
};
struct ItemExpr : Expr {
  explicit ItemExpr(int l) : Expr(ExprKind::item, l) {}
  ExprPtr object, index;
};
struct SliceExpr : Expr {
  explicit SliceExpr(int l) : Expr(ExprKind::slice, l) {}
  ExprPtr object, start, stop, step;  // the last three may be null
};
struct Arguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keyword;
  ExprPtr star, star_star;  // may be null
};
struct CallExpr : Expr {
  explicit CallExpr(int l) : Expr(ExprKind::call, l) {}
  ExprPtr callee;
  Arguments args;
};
struct FilterExpr : Expr {  // filter and test; the operand of a filter is null in a filter block
  using Expr::Expr;
  ExprPtr operand;
  std::string name;
  Arguments args;
};

enum class StmtKind : uint8_t {
  output,
  if_,
  for_,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  generation,
  with,
  break_,
  continue_,
};

struct Stmt {
  Stmt(StmtKind k, int l) : kind(k), line(l) {}
  virtual ~Stmt() = default;
  StmtKind kind;
  int line;
};
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// A name, a tuple of targets, or `namespace.attribute`.
struct Target {
  NameId name = -1;
  std::string attribute;        // not empty: assignment to a namespace
  std::vector<Target> members;  // used when `is_tuple`
  bool is_tuple = false;
  int line = 0;
};

struct OutputStmt : Stmt {
  explicit OutputStmt(int l) : Stmt(StmtKind::output, l) {}
  std::vector<ExprPtr> parts;
};
struct IfStmt : Stmt {
  explicit IfStmt(int l) : Stmt(StmtKind::if_, l) {}
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct ForStmt : Stmt {
  explicit ForStmt(int l) : Stmt(StmtKind::for_, l) {}
  Target target;
  ExprPtr iterable, condition;  // condition may be null
  bool recursive = false;
  Body body, otherwise;
  ScopePlan body_scope, else_scope, test_scope;
};
struct SetStmt : Stmt {
  explicit SetStmt(int l) : Stmt(StmtKind::set, l) {}
  Target target;
  ExprPtr value;
};
struct SetBlockStmt : Stmt {
  explicit SetBlockStmt(int l) : Stmt(StmtKind::set_block, l) {}
  Target target;
  ExprPtr filter;  // may be null
  Body body;
  ScopePlan scope;
};
struct MacroStmt : Stmt {
  explicit MacroStmt(int l) : Stmt(StmtKind::macro, l) {}
  NameId name = -1;
  std::vector<NameId> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  ScopePlan scope;
  bool uses_caller = false, uses_kwargs = false, uses_varargs = false;
};
struct CallBlockStmt : Stmt {
  explicit CallBlockStmt(int l) : Stmt(StmtKind::call_block, l) {}
  ExprPtr call;
  std::unique_ptr<MacroStmt> caller;
};
struct FilterBlockStmt : Stmt {
  explicit FilterBlockStmt(int l) : Stmt(StmtKind::filter_block, l) {}
  ExprPtr filter;
  Body body;
  ScopePlan scope;
};
struct GenerationStmt : Stmt {
  explicit GenerationStmt(int l) : Stmt(StmtKind::generation, l) {}
  Body body;
  ScopePlan scope;
};
struct WithStmt : Stmt {
  explicit WithStmt(int l) : Stmt(StmtKind::with, l) {}
  std::vector<std::pair<Target, ExprPtr>> bindings;
  Body body;
  ScopePlan scope;
};

struct Program {
  Body body;
  ScopePlan scope;
  std::vector<std::string> names;
  NameId loop_name = -1, caller_name = -1, kwargs_name = -1, varargs_name = -1;  // -1: not used
};

}  // namespace chimere::jinja
