// eval.h  The interpreter of one render: scopes, limits, and the operations built-ins are made of.
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jinja/ast.h"
#include "jinja/template.h"
#include "jinja/value.h"

namespace chimere::jinja {

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keyword;
  bool has_input_names = false;  // some keyword came out of a mapping (**), which may be input

  Text name(const std::string& key) const { return Text(key, has_input_names); }
};

class Interpreter;
using Builtin = Result<Value> (*)(Interpreter&, const Value& self, const CallArgs&);

// A built-in function or a method bound to `self`.
struct FunctionObject : Object {
  const char* name = "";
  Builtin call = nullptr;
  Value self;
};

struct Scope {
  const ScopePlan* plan = nullptr;
  std::vector<Value> slots;
  std::shared_ptr<Scope> parent;
  bool is_captured = false;  // by a macro
};

struct MacroObject : Object {
  const MacroStmt* macro = nullptr;
  std::shared_ptr<Scope> scope;  // where it was defined
};

// The `loop` variable. Items are taken from `source` one by one, because the condition of `for x in y if condition` may
// depend on what the body did.
struct LoopObject : Object {
  std::vector<Value> source;
  size_t next = 0;
  Value before = Value::missing(), current = Value::missing(), after = Value::missing();
  int64_t index0 = -1;
  int64_t known_length = -1;
  int depth0 = 0;
  Value last_changed = Value::missing();
  const ForStmt* stmt = nullptr;
  std::weak_ptr<Scope> scope;  // around the loop
  bool is_filtered = false;
};

class Interpreter {
 public:
  Interpreter(const Program& program, const Value& globals, const Limits& limits, const Clock& clock);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  Result<Text> run();

  // Limits. `tick` counts work; `check_bytes` asks before something big is built.
  Status tick(uint64_t n = 1);
  uint64_t n_steps() const { return n_steps_; }
  Status check_bytes(size_t n_bytes);
  Error error(const std::string& what) const;
  Error exhausted(const std::string& what) const;

  // Values counted against the limits.
  Result<Value> string(Text text, bool markup = false);
  Result<Value> literal(std::string bytes) { return string(Text::literal(std::move(bytes))); }
  Result<Value> sequence(Kind kind, std::vector<Value> items);
  Result<Value> list(std::vector<Value> items) { return sequence(Kind::list, std::move(items)); }
  Result<Value> pair(Value a, Value b);
  Result<Value> dict(std::vector<std::pair<Value, Value>> entries);
  Result<Value> iterator(std::vector<Value> items, std::string description, std::unique_ptr<Error> error = nullptr);
  Result<Value> name_space(std::vector<std::pair<Value, Value>> entries);
  Result<Value> function(const char* name, Builtin call, Value self);
  Result<Value> undefined(std::string message);

  // Python's operations.
  bool truth(const Value& v) const;
  Result<Text> to_text(const Value& v);  // str()
  Result<Text> repr(const Value& v);
  Result<int64_t> length(const Value& v);
  Result<std::vector<Value>> iterate(const Value& v);
  Result<bool> equals(const Value& a, const Value& b);
  Result<bool> less(const Value& a, const Value& b, CompareOp op);  // any of the four order operators
  Result<bool> contains(const Value& container, const Value& item);
  Result<Value> binary(BinaryOp op, const Value& a, const Value& b);
  Result<Value> get_attribute(const Value& object, const std::string& name);
  Result<Value> get_item(const Value& object, const Value& key);
  Result<Value> slice(const Value& object, const Value& start, const Value& stop, const Value& step);
  Result<Value> call(const Value& callee, CallArgs args);
  Result<Value> apply_filter(const std::string& name, const Value& operand, const CallArgs& args);
  Result<Value> apply_test(const std::string& name, const Value& operand, const CallArgs& args);

  // Arguments by position or keyword into out[0 .. names.size()), `missing` where not given. A name that starts with
  // '/' can only be given by position.
  Status bind(const char* function, const CallArgs& args, std::initializer_list<const char*> names, size_t n_required,
              Value* out);

  const Clock& clock() const { return clock_; }

 private:
  enum class Flow { normal, break_, continue_ };
  class DepthGuard;

  Result<Flow> exec(const Body& body);
  Result<Flow> exec(const Stmt& stmt);
  Result<Flow> exec_if(const IfStmt& stmt);
  Result<Flow> exec_for(const ForStmt& stmt);
  Result<Flow> run_loop(const ForStmt& stmt, const Value& iterable, int depth0);
  Result<Text> capture(const Body& body, Flow& flow);
  Result<Flow> exec_set_block(const SetBlockStmt& stmt);
  Result<Flow> exec_filter_block(const FilterBlockStmt& stmt);
  Result<Flow> exec_with(const WithStmt& stmt);
  Result<Flow> exec_call_block(const CallBlockStmt& stmt);
  Status exec_generation(const GenerationStmt& stmt);
  Status emit(const Text& text);
  Status assign(const Target& target, const Value& value);

  Result<Value> eval(const Expr& expr);
  Result<Value> eval_node(const Expr& expr);
  Result<Value> eval_compare(const CompareExpr& expr);
  Result<Value> eval_binary(const BinaryExpr& expr);
  Result<Value> eval_unary(const UnaryExpr& expr);
  Result<Value> eval_concat(const ConcatExpr& expr);
  Result<Value> eval_conditional(const ConditionalExpr& expr);
  Result<Value> eval_item(const ItemExpr& expr);
  Result<Value> eval_slice(const SliceExpr& expr);
  Result<Value> eval_call(const CallExpr& expr, const Value* caller);
  Result<Value> eval_filter(const FilterExpr& expr, const Value* block_text);
  Result<CallArgs> eval_arguments(const Arguments& args);
  Result<Value> eval_dict(const DictExpr& expr);
  Result<std::vector<Value>> eval_all(const std::vector<ExprPtr>& exprs);

  Result<Value> lookup(NameId name);
  Value resolve(NameId name) const;  // in the globals of the render, then the built-in ones
  Value* find_slot(const Scope* scope, NameId name) const;
  Result<std::shared_ptr<Scope>> open_scope(const ScopePlan& plan, std::shared_ptr<Scope> parent);
  Result<Value> make_macro(const MacroStmt& stmt);
  Result<Value> call_macro(const MacroObject& macro, CallArgs args);
  Result<Value> call_loop(LoopObject& loop, const CallArgs& args);
  Result<Value> loop_attribute(const Value& loop, const std::string& name);
  Result<Value> loop_take(LoopObject& loop);  // the next item, `missing` at the end
  Result<Value> loop_peek(LoopObject& loop);
  Result<int64_t> loop_length(LoopObject& loop);
  Result<Value> arithmetic(BinaryOp op, const Value& a, const Value& b);
  Result<Value> repeat(const Value& sequence, int64_t n);
  Status charge(Object& object, size_t n_bytes, int child_depth);

  const Program& program_;
  const Value& globals_;
  const Limits& limits_;
  const Clock& clock_;
  std::chrono::steady_clock::time_point deadline_;
  Meter meter_;
  uint64_t n_steps_ = 0;
  uint64_t next_time_check_ = 0;
  int depth_ = 0;
  int line_ = 1;
  std::shared_ptr<Scope> scope_;
  Text* out_ = nullptr;
  std::vector<std::shared_ptr<DictObject>> name_spaces_;  // owned here, because they can form cycles
  std::vector<std::shared_ptr<Scope>> captured_scopes_;   // likewise: scope -> macro -> scope
};

}  // namespace chimere::jinja
