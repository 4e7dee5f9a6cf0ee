// eval.cpp  Statements, scopes and limits of a render. Expressions are in eval_expr.cpp.
#include "jinja/eval.h"

#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/lexer.h"

namespace chimere::jinja {

Interpreter::Interpreter(const Program& program, const Value& globals, const Limits& limits, const Clock& clock)
    : program_(program),
      globals_(globals),
      limits_(limits),
      clock_(clock),
      deadline_(std::chrono::steady_clock::now() + limits.max_time) {}

Interpreter::~Interpreter() {
  // While the two lists hold everything that can be part of a cycle, emptying them one by one cannot recurse.
  for (const auto& name_space : name_spaces_) name_space->entries.clear();
  for (const auto& scope : captured_scopes_) scope->slots.clear();
}

Result<Text> Interpreter::run() {
  Text out;
  out_ = &out;
  TRY_ASSIGN(scope_, open_scope(program_.scope, nullptr));
  TRY(exec(program_.body));
  return out;
}

Error Interpreter::error(const std::string& what) const { return template_error(line_, what); }

Error Interpreter::exhausted(const std::string& what) const {
  Error error = template_error(line_, what);
  error.code = Code::exhausted;
  return error;
}

Status Interpreter::tick(uint64_t n) {
  n_steps_ += n;
  if (n_steps_ > limits_.max_steps) {
    return exhausted("gave up after " + std::to_string(limits_.max_steps) + " steps");
  }
  if (n_steps_ >= next_time_check_) {
    constexpr uint64_t kStepsPerTimeCheck = 1024;
    next_time_check_ = n_steps_ + kStepsPerTimeCheck;
    if (std::chrono::steady_clock::now() > deadline_) {
      return exhausted("gave up after " + std::to_string(limits_.max_time.count()) + " ms");
    }
  }
  return Ok{};
}

Status Interpreter::check_bytes(size_t n_bytes) {
  if (n_bytes > limits_.max_value_bytes) {
    return exhausted("a value of " + std::to_string(n_bytes) + " bytes exceeds the limit of " +
                     std::to_string(limits_.max_value_bytes));
  }
  if (meter_.live_bytes > limits_.max_live_bytes || n_bytes > limits_.max_live_bytes - meter_.live_bytes) {
    return exhausted("values take more than " + std::to_string(limits_.max_live_bytes) + " bytes");
  }
  return tick(n_bytes / 64);
}

Status Interpreter::charge(Object& object, size_t n_bytes, int child_depth) {
  object.depth = child_depth + 1;
  if (object.depth > limits_.max_value_depth) {
    return exhausted("values nested deeper than " + std::to_string(limits_.max_value_depth) + " levels");
  }
  constexpr size_t kObjectBytes = 96;  // the object, its control block, allocator overhead
  TRY(check_bytes(n_bytes + kObjectBytes));
  object.charge = Charge(&meter_, n_bytes + kObjectBytes);
  return Ok{};
}

// Values

Result<Value> Interpreter::string(Text text, bool markup) {
  auto object = std::make_shared<StringObject>();
  TRY(charge(*object, text.memory_bytes(), 0));
  object->text = std::move(text);
  object->markup = markup;
  return Value(Kind::string, std::move(object));
}

Result<Value> Interpreter::sequence(Kind kind, std::vector<Value> items) {
  auto object = std::make_shared<SequenceObject>();
  int child_depth = 0;
  for (const Value& item : items) child_depth = std::max(child_depth, item.depth());
  TRY(charge(*object, items.size() * sizeof(Value), child_depth));
  object->items = std::move(items);
  return Value(kind, std::move(object));
}

Result<Value> Interpreter::pair(Value a, Value b) {
  std::vector<Value> items;
  items.reserve(2);
  items.push_back(std::move(a));
  items.push_back(std::move(b));
  return sequence(Kind::tuple, std::move(items));
}

Result<Value> Interpreter::dict(std::vector<std::pair<Value, Value>> entries) {
  auto object = std::make_shared<DictObject>();
  int child_depth = 0;
  for (const auto& [key, value] : entries) child_depth = std::max({child_depth, key.depth(), value.depth()});
  constexpr size_t kEntryBytes = 2 * sizeof(Value) + 64;  // with its part of the index
  TRY(charge(*object, entries.size() * kEntryBytes, child_depth));
  for (auto& [key, value] : entries) {
    if (!is_hashable(key)) return error(std::string("unhashable type: '") + type_name(key) + "'");
    if (!key.is_string()) TRY(tick(object->entries.size() / 8));
    object->set(std::move(key), std::move(value));
  }
  return Value(Kind::dict, std::move(object));
}

Result<Value> Interpreter::iterator(std::vector<Value> items, std::string description, std::unique_ptr<Error> error) {
  auto object = std::make_shared<IteratorObject>();
  int child_depth = 0;
  for (const Value& item : items) child_depth = std::max(child_depth, item.depth());
  TRY(charge(*object, items.size() * sizeof(Value), child_depth));
  object->items = std::move(items);
  object->description = std::move(description);
  object->error = std::move(error);
  return Value(Kind::iterator, std::move(object));
}

Result<Value> Interpreter::name_space(std::vector<std::pair<Value, Value>> entries) {
  auto object = std::make_shared<DictObject>();
  TRY(charge(*object, entries.size() * 2 * sizeof(Value), 0));
  for (auto& [key, value] : entries) object->set(std::move(key), std::move(value));
  name_spaces_.push_back(object);
  return Value(Kind::name_space, std::move(object));
}

Result<Value> Interpreter::function(const char* name, Builtin call, Value self) {
  auto object = std::make_shared<FunctionObject>();
  TRY(charge(*object, sizeof(FunctionObject), self.depth()));
  object->name = name;
  object->call = call;
  object->self = std::move(self);
  return Value(Kind::function, std::move(object));
}

Result<Value> Interpreter::undefined(std::string message) {
  auto object = std::make_shared<UndefinedObject>();
  TRY(charge(*object, message.capacity(), 0));
  object->message = std::move(message);
  return Value(Kind::undefined, std::move(object));
}

// Scopes

Value* Interpreter::find_slot(const Scope* scope, NameId name) const {
  for (; scope; scope = scope->parent.get()) {
    const auto& slots = scope->plan->slots;
    const auto it =
        std::lower_bound(slots.begin(), slots.end(), name, [](const Slot& slot, NameId id) { return slot.name < id; });
    if (it != slots.end() && it->name == name) {
      return const_cast<Value*>(&scope->slots[static_cast<size_t>(it - slots.begin())]);
    }
  }
  return nullptr;
}

Value Interpreter::resolve(NameId name) const {
  const std::string& text = program_.names[static_cast<size_t>(name)];
  if (globals_.is(Kind::dict)) {
    if (const Value* found = globals_.dict().find(text)) return *found;
  }
  if (const Builtin builtin = find_global(text)) {
    auto object = std::make_shared<FunctionObject>();
    object->name = text.c_str();
    object->call = builtin;
    return Value(Kind::function, std::move(object));
  }
  return Value::missing();
}

Result<Value> Interpreter::lookup(NameId name) {
  const Value* slot = find_slot(scope_.get(), name);
  Value value = slot ? *slot : resolve(name);
  if (!value.is_missing()) return value;
  const std::string& text = program_.names[static_cast<size_t>(name)];
  return undefined("'" + text + "' is undefined" + left_out_note(NameKind::global, text));
}

Result<std::shared_ptr<Scope>> Interpreter::open_scope(const ScopePlan& plan, std::shared_ptr<Scope> parent) {
  TRY(tick(1 + plan.slots.size()));
  auto scope = std::make_shared<Scope>();
  scope->plan = &plan;
  scope->slots.reserve(plan.slots.size());
  for (const Slot& slot : plan.slots) {
    switch (slot.load) {
      case LoadKind::resolve: scope->slots.push_back(resolve(slot.name)); break;
      case LoadKind::alias: {
        const Value* outer = find_slot(parent.get(), slot.name);
        scope->slots.push_back(outer ? *outer : Value::missing());
        break;
      }
      case LoadKind::parameter:
      case LoadKind::undefined: scope->slots.push_back(Value::missing()); break;
    }
  }
  scope->parent = std::move(parent);
  return scope;
}

Status Interpreter::assign(const Target& target, const Value& value) {
  line_ = target.line;
  if (target.is_tuple) {
    TRY_ASSIGN(const std::vector<Value> items, iterate(value));
    if (items.size() != target.members.size()) {
      return error("cannot unpack " + std::to_string(items.size()) + " values into " +
                   std::to_string(target.members.size()) + " names");
    }
    for (size_t i = 0; i < items.size(); ++i) TRY(assign(target.members[i], items[i]));
    return Ok{};
  }
  if (!target.attribute.empty()) {
    TRY_ASSIGN(const Value object, lookup(target.name));
    if (!object.is(Kind::name_space)) return error("cannot assign attribute on non-namespace object");
    auto& attributes = object.as<DictObject>();
    TRY_ASSIGN(Value key, literal(target.attribute));
    attributes.set(std::move(key), value);
    return Ok{};
  }
  Value* slot = find_slot(scope_.get(), target.name);
  if (!slot) return error("no variable '" + program_.names[static_cast<size_t>(target.name)] + "' in this scope");
  *slot = value;
  return Ok{};
}

// Statements

class Interpreter::DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  ~DepthGuard() { --depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  int& depth_;
};

Result<Interpreter::Flow> Interpreter::exec(const Body& body) {
  for (const StmtPtr& stmt : body) {
    TRY_ASSIGN(const Flow flow, exec(*stmt));
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Result<Interpreter::Flow> Interpreter::exec(const Stmt& stmt) {
  const DepthGuard guard(depth_);
  line_ = stmt.line;
  TRY(tick());
  if (depth_ > limits_.max_depth) {
    return exhausted("nested deeper than " + std::to_string(limits_.max_depth) + " levels");
  }
  switch (stmt.kind) {
    case StmtKind::output:
      for (const ExprPtr& part : static_cast<const OutputStmt&>(stmt).parts) {
        TRY_ASSIGN(const Value value, eval(*part));
        if (value.is_string()) {
          TRY(emit(value.text()));
        } else {
          TRY_ASSIGN(const Text text, to_text(value));
          TRY(emit(text));
        }
      }
      return Flow::normal;
    case StmtKind::if_: return exec_if(static_cast<const IfStmt&>(stmt));
    case StmtKind::for_: return exec_for(static_cast<const ForStmt&>(stmt));
    case StmtKind::set: {
      const auto& node = static_cast<const SetStmt&>(stmt);
      TRY_ASSIGN(const Value value, eval(*node.value));
      TRY(assign(node.target, value));
      return Flow::normal;
    }
    case StmtKind::set_block: return exec_set_block(static_cast<const SetBlockStmt&>(stmt));
    case StmtKind::macro: {
      const auto& node = static_cast<const MacroStmt&>(stmt);
      Target target;
      target.name = node.name;
      target.line = node.line;
      TRY_ASSIGN(const Value macro, make_macro(node));
      TRY(assign(target, macro));
      return Flow::normal;
    }
    case StmtKind::call_block: return exec_call_block(static_cast<const CallBlockStmt&>(stmt));
    case StmtKind::filter_block: return exec_filter_block(static_cast<const FilterBlockStmt&>(stmt));
    case StmtKind::generation: TRY(exec_generation(static_cast<const GenerationStmt&>(stmt))); return Flow::normal;
    case StmtKind::with: return exec_with(static_cast<const WithStmt&>(stmt));
    case StmtKind::break_: return Flow::break_;
    case StmtKind::continue_: return Flow::continue_;
  }
  return Flow::normal;
}

Status Interpreter::emit(const Text& text) {
  if (text.size() > limits_.max_output_bytes || out_->size() > limits_.max_output_bytes - text.size()) {
    return exhausted("output exceeds " + std::to_string(limits_.max_output_bytes) + " bytes");
  }
  TRY(check_bytes(text.size()));
  meter_.live_bytes += text.size();
  out_->append(text);
  return Ok{};
}

Result<Interpreter::Flow> Interpreter::exec_if(const IfStmt& stmt) {
  for (const auto& [condition, body] : stmt.branches) {
    TRY_ASSIGN(const Value value, eval(*condition));
    if (truth(value)) return exec(body);
  }
  return exec(stmt.otherwise);
}

// Runs a body in the current scope with its output kept apart.
Result<Text> Interpreter::capture(const Body& body, Flow& flow) {
  Text buffer;
  Text* outer = std::exchange(out_, &buffer);
  Result<Flow> result = exec(body);
  out_ = outer;
  meter_.live_bytes -= buffer.size();
  if (!result) return std::move(result.error());
  flow = *result;
  return buffer;
}

Result<Interpreter::Flow> Interpreter::exec_set_block(const SetBlockStmt& stmt) {
  const std::shared_ptr<Scope> outer = scope_;
  TRY_ASSIGN(scope_, open_scope(stmt.scope, outer));
  Flow flow = Flow::normal;
  TRY_ASSIGN(Text text, capture(stmt.body, flow));
  if (flow != Flow::normal) {
    scope_ = outer;
    return flow;
  }
  TRY_ASSIGN(Value value, string(std::move(text)));
  if (stmt.filter) {
    TRY_ASSIGN(value, eval_filter(static_cast<const FilterExpr&>(*stmt.filter), &value));
  }
  scope_ = outer;
  TRY(assign(stmt.target, value));
  return Flow::normal;
}

Result<Interpreter::Flow> Interpreter::exec_filter_block(const FilterBlockStmt& stmt) {
  const std::shared_ptr<Scope> outer = scope_;
  TRY_ASSIGN(scope_, open_scope(stmt.scope, outer));
  Flow flow = Flow::normal;
  TRY_ASSIGN(Text text, capture(stmt.body, flow));
  if (flow == Flow::normal) {
    TRY_ASSIGN(Value value, string(std::move(text)));
    TRY_ASSIGN(value, eval_filter(static_cast<const FilterExpr&>(*stmt.filter), &value));
    TRY_ASSIGN(const Text filtered, to_text(value));
    TRY(emit(filtered));
  }
  scope_ = outer;
  return flow;
}

Result<Interpreter::Flow> Interpreter::exec_with(const WithStmt& stmt) {
  const std::shared_ptr<Scope> outer = scope_;
  TRY_ASSIGN(const std::shared_ptr<Scope> inner, open_scope(stmt.scope, outer));
  for (const auto& [target, expr] : stmt.bindings) {
    TRY_ASSIGN(const Value value, eval(*expr));
    scope_ = inner;
    TRY(assign(target, value));
    scope_ = outer;
  }
  scope_ = inner;
  TRY_ASSIGN(const Flow flow, exec(stmt.body));
  scope_ = outer;
  return flow;
}

Status Interpreter::exec_generation(const GenerationStmt& stmt) {
  const std::shared_ptr<Scope> outer = scope_;
  TRY_ASSIGN(scope_, open_scope(stmt.scope, outer));
  TRY(exec(stmt.body));
  scope_ = outer;
  return Ok{};
}

Result<Interpreter::Flow> Interpreter::exec_call_block(const CallBlockStmt& stmt) {
  TRY_ASSIGN(const Value caller, make_macro(*stmt.caller));
  TRY_ASSIGN(const Value result, eval_call(static_cast<const CallExpr&>(*stmt.call), &caller));
  TRY_ASSIGN(const Text text, to_text(result));
  TRY(emit(text));
  return Flow::normal;
}

// Loops

Result<Interpreter::Flow> Interpreter::exec_for(const ForStmt& stmt) {
  TRY_ASSIGN(const Value iterable, eval(*stmt.iterable));
  return run_loop(stmt, iterable, 0);
}

Result<Interpreter::Flow> Interpreter::run_loop(const ForStmt& stmt, const Value& iterable, int depth0) {
  const std::shared_ptr<Scope> outer = scope_;
  auto loop = std::make_shared<LoopObject>();
  TRY_ASSIGN(loop->source, iterate(iterable));
  int child_depth = 0;
  for (const Value& item : loop->source) child_depth = std::max(child_depth, item.depth());
  TRY(charge(*loop, loop->source.size() * sizeof(Value), child_depth));
  loop->depth0 = depth0;
  loop->stmt = &stmt;
  loop->scope = outer;
  loop->is_filtered = stmt.condition != nullptr;
  const Value loop_value(Kind::loop, loop);
  bool completed_one = false;
  while (true) {
    Value item = std::exchange(loop->after, Value::missing());
    if (item.is_missing()) {
      TRY_ASSIGN(item, loop_take(*loop));
      if (item.is_missing()) break;
    }
    ++loop->index0;
    loop->before = std::exchange(loop->current, item);
    TRY_ASSIGN(scope_, open_scope(stmt.body_scope, outer));
    if (Value* slot = find_slot(scope_.get(), program_.loop_name)) *slot = loop_value;
    TRY(assign(stmt.target, item));
    TRY_ASSIGN(const Flow flow, exec(stmt.body));
    scope_ = outer;
    if (flow == Flow::break_) break;
    if (flow == Flow::normal) completed_one = true;
  }
  // As compiled by Jinja: `else` runs unless some iteration reached the end of the body.
  if (completed_one || stmt.otherwise.empty()) return Flow::normal;
  TRY_ASSIGN(scope_, open_scope(stmt.else_scope, outer));
  TRY_ASSIGN(const Flow flow, exec(stmt.otherwise));
  scope_ = outer;
  return flow;
}

Result<Value> Interpreter::loop_take(LoopObject& loop) {
  while (loop.next < loop.source.size()) {
    Value item = loop.source[loop.next++];
    if (!loop.is_filtered) return item;
    const std::shared_ptr<Scope> around = loop.scope.lock();
    if (!around) return error("the loop has ended");
    const std::shared_ptr<Scope> current = scope_;
    TRY_ASSIGN(scope_, open_scope(loop.stmt->test_scope, around));
    TRY(assign(loop.stmt->target, item));
    TRY_ASSIGN(const Value keep, eval(*loop.stmt->condition));
    scope_ = current;
    if (truth(keep)) return item;
  }
  return Value::missing();
}

Result<Value> Interpreter::loop_peek(LoopObject& loop) {
  if (loop.after.is_missing()) {
    TRY_ASSIGN(loop.after, loop_take(loop));
  }
  return loop.after;
}

Result<int64_t> Interpreter::loop_length(LoopObject& loop) {
  if (loop.known_length >= 0) return loop.known_length;
  if (loop.is_filtered) {
    std::vector<Value> rest;
    while (true) {
      TRY_ASSIGN(Value item, loop_take(loop));
      if (item.is_missing()) break;
      rest.push_back(std::move(item));
    }
    loop.known_length = static_cast<int64_t>(rest.size()) + loop.index0 + 1 + (loop.after.is_missing() ? 0 : 1);
    loop.source = std::move(rest);
    loop.next = 0;
    loop.is_filtered = false;
  } else {
    loop.known_length = static_cast<int64_t>(loop.source.size());
  }
  return loop.known_length;
}

Result<Value> Interpreter::call_loop(LoopObject& loop, const CallArgs& args) {
  if (!loop.stmt->recursive) return error("the loop must be marked 'recursive' to be called");
  Value iterable;
  TRY(bind("loop", args, {"iterable"}, 1, &iterable));
  const std::shared_ptr<Scope> around = loop.scope.lock();
  if (!around) return error("the loop has ended");
  const std::shared_ptr<Scope> current = std::exchange(scope_, around);
  Text buffer;
  Text* outer = std::exchange(out_, &buffer);
  Result<Flow> flow = run_loop(*loop.stmt, iterable, loop.depth0 + 1);
  out_ = outer;
  meter_.live_bytes -= buffer.size();
  scope_ = current;
  if (!flow) return std::move(flow.error());
  return string(std::move(buffer));
}

// Macros

Result<Value> Interpreter::make_macro(const MacroStmt& stmt) {
  auto object = std::make_shared<MacroObject>();
  TRY(charge(*object, sizeof(MacroObject), 0));
  object->macro = &stmt;
  object->scope = scope_;
  if (!scope_->is_captured) {
    scope_->is_captured = true;
    captured_scopes_.push_back(scope_);
    meter_.live_bytes += sizeof(Scope) + scope_->slots.size() * sizeof(Value);
  }
  return Value(Kind::macro, std::move(object));
}

Result<Value> Interpreter::call_macro(const MacroObject& object, CallArgs args) {
  const MacroStmt& macro = *object.macro;
  const auto name_of = [&](NameId id) -> const std::string& { return program_.names[static_cast<size_t>(id)]; };
  const std::shared_ptr<Scope> current = scope_;
  TRY_ASSIGN(const std::shared_ptr<Scope> inner, open_scope(macro.scope, object.scope));
  const auto set = [&](NameId name, Value value) { *find_slot(inner.get(), name) = std::move(value); };
  const auto take_keyword = [&](const std::string& name) {
    for (auto it = args.keyword.begin(); it != args.keyword.end(); ++it) {
      if (it->first != name) continue;
      Value value = std::move(it->second);
      args.keyword.erase(it);
      return value;
    }
    return Value::missing();
  };
  const size_t n_parameters = macro.parameters.size();
  for (size_t i = 0; i < n_parameters; ++i) {
    set(macro.parameters[i],
        i < args.positional.size() ? args.positional[i] : take_keyword(name_of(macro.parameters[i])));
  }
  if (macro.uses_caller) {
    Value caller = take_keyword("caller");
    if (caller.is_missing() || caller.is_none()) {
      TRY_ASSIGN(caller, undefined("no caller defined"));
    }
    set(program_.caller_name, std::move(caller));
  }
  if (macro.uses_kwargs) {
    std::vector<std::pair<Value, Value>> entries;
    for (auto& [name, value] : args.keyword) {
      TRY_ASSIGN(Value key, string(args.name(name)));
      entries.emplace_back(std::move(key), std::move(value));
    }
    TRY_ASSIGN(Value kwargs, dict(std::move(entries)));
    set(program_.kwargs_name, std::move(kwargs));
  } else if (!args.keyword.empty()) {
    return error("macro '" + name_of(macro.name) + "' takes no keyword argument '" + args.keyword.front().first + "'");
  }
  if (macro.uses_varargs) {
    std::vector<Value> rest;
    for (size_t i = n_parameters; i < args.positional.size(); ++i) rest.push_back(args.positional[i]);
    TRY_ASSIGN(Value varargs, sequence(Kind::tuple, std::move(rest)));
    set(program_.varargs_name, std::move(varargs));
  } else if (args.positional.size() > n_parameters) {
    return error("macro '" + name_of(macro.name) + "' takes not more than " + std::to_string(n_parameters) +
                 " argument(s)");
  }
  scope_ = inner;
  const size_t first_default = n_parameters - macro.defaults.size();
  for (size_t i = 0; i < n_parameters; ++i) {
    Value* slot = find_slot(inner.get(), macro.parameters[i]);
    if (!slot->is_missing()) continue;
    if (i < first_default) {
      TRY_ASSIGN(*slot, undefined("parameter '" + name_of(macro.parameters[i]) + "' was not provided"));
    } else {
      TRY_ASSIGN(Value value, eval(*macro.defaults[i - first_default]));
      *find_slot(inner.get(), macro.parameters[i]) = std::move(value);
    }
  }
  Flow flow = Flow::normal;
  TRY_ASSIGN(Text text, capture(macro.body, flow));
  scope_ = current;
  return string(std::move(text));
}

}  // namespace chimere::jinja
