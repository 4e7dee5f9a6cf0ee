// eval_expr.cpp  Expressions, calls and argument binding.
#include <algorithm>

#include "jinja/builtins.h"
#include "jinja/eval.h"

namespace chimere::jinja {

Result<Value> Interpreter::eval(const Expr& expr) {
  if (expr.kind == ExprKind::constant) return static_cast<const ConstantExpr&>(expr).value;
  line_ = expr.line;
  TRY(tick());
  if (++depth_ > limits_.max_depth) {
    return exhausted("nested deeper than " + std::to_string(limits_.max_depth) + " levels");
  }
  Result<Value> value = eval_node(expr);
  --depth_;
  return value;
}

Result<Value> Interpreter::eval_node(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::constant: return static_cast<const ConstantExpr&>(expr).value;
    case ExprKind::name: return lookup(static_cast<const NameExpr&>(expr).name);
    case ExprKind::list:
    case ExprKind::tuple: {
      TRY_ASSIGN(std::vector<Value> items, eval_all(static_cast<const ListExpr&>(expr).items));
      return sequence(expr.kind == ExprKind::list ? Kind::list : Kind::tuple, std::move(items));
    }
    case ExprKind::dict: return eval_dict(static_cast<const DictExpr&>(expr));
    case ExprKind::binary: return eval_binary(static_cast<const BinaryExpr&>(expr));
    case ExprKind::unary:
    case ExprKind::logical_not: return eval_unary(static_cast<const UnaryExpr&>(expr));
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      const auto& node = static_cast<const LogicalExpr&>(expr);
      TRY_ASSIGN(Value left, eval(*node.left));
      if (truth(left) == (expr.kind == ExprKind::logical_or)) return left;
      return eval(*node.right);
    }
    case ExprKind::concat: return eval_concat(static_cast<const ConcatExpr&>(expr));
    case ExprKind::compare: return eval_compare(static_cast<const CompareExpr&>(expr));
    case ExprKind::conditional: return eval_conditional(static_cast<const ConditionalExpr&>(expr));
    case ExprKind::attribute: {
      const auto& node = static_cast<const AttributeExpr&>(expr);
      TRY_ASSIGN(const Value object, eval(*node.object));
      line_ = expr.line;
      return get_attribute(object, node.name);
    }
    case ExprKind::item: return eval_item(static_cast<const ItemExpr&>(expr));
    case ExprKind::slice: return eval_slice(static_cast<const SliceExpr&>(expr));
    case ExprKind::call: return eval_call(static_cast<const CallExpr&>(expr), nullptr);
    case ExprKind::filter: return eval_filter(static_cast<const FilterExpr&>(expr), nullptr);
    case ExprKind::test: {
      const auto& node = static_cast<const FilterExpr&>(expr);
      TRY_ASSIGN(const Value operand, eval(*node.operand));
      TRY_ASSIGN(const CallArgs args, eval_arguments(node.args));
      line_ = expr.line;
      return apply_test(node.name, operand, args);
    }
  }
  return Value();
}

Result<std::vector<Value>> Interpreter::eval_all(const std::vector<ExprPtr>& exprs) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) {
    TRY_ASSIGN(Value value, eval(*expr));
    values.push_back(std::move(value));
  }
  return values;
}

Result<Value> Interpreter::eval_dict(const DictExpr& expr) {
  std::vector<std::pair<Value, Value>> entries;
  entries.reserve(expr.entries.size());
  for (const auto& [key_expr, value_expr] : expr.entries) {
    TRY_ASSIGN(Value key, eval(*key_expr));
    TRY_ASSIGN(Value value, eval(*value_expr));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return dict(std::move(entries));
}

Result<Value> Interpreter::eval_binary(const BinaryExpr& expr) {
  TRY_ASSIGN(const Value left, eval(*expr.left));
  TRY_ASSIGN(const Value right, eval(*expr.right));
  line_ = expr.line;
  return binary(expr.op, left, right);
}

Result<Value> Interpreter::eval_unary(const UnaryExpr& expr) {
  TRY_ASSIGN(const Value operand, eval(*expr.operand));
  if (expr.kind == ExprKind::logical_not) return Value(!truth(operand));
  if (operand.is_undefined()) return error(operand.as<UndefinedObject>().message);
  if (operand.is(Kind::real)) return Value(expr.negate ? -operand.real() : operand.real());
  if (!operand.is_integral()) return error(std::string("bad operand type for unary operator: ") + type_name(operand));
  if (!expr.negate) return Value(operand.integer());
  if (operand.integer() == INT64_MIN) return error("integer overflow");
  return Value(-operand.integer());
}

Result<Value> Interpreter::eval_concat(const ConcatExpr& expr) {
  Text text;
  for (const ExprPtr& part : expr.parts) {
    TRY_ASSIGN(const Value value, eval(*part));
    TRY_ASSIGN(const Text piece, to_text(value));
    TRY(check_bytes(text.size() + piece.size()));
    text.append(piece);
  }
  return string(std::move(text));
}

Result<Value> Interpreter::eval_compare(const CompareExpr& expr) {
  TRY_ASSIGN(Value left, eval(*expr.first));
  for (const auto& [op, operand] : expr.rest) {
    TRY_ASSIGN(Value right, eval(*operand));
    line_ = expr.line;
    bool holds = false;
    if (op == CompareOp::eq || op == CompareOp::ne) {
      TRY_ASSIGN(const bool equal, equals(left, right));
      holds = equal == (op == CompareOp::eq);
    } else if (op == CompareOp::in || op == CompareOp::not_in) {
      TRY_ASSIGN(const bool found, contains(right, left));
      holds = found == (op == CompareOp::in);
    } else {
      TRY_ASSIGN(holds, less(left, right, op));
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::eval_conditional(const ConditionalExpr& expr) {
  TRY_ASSIGN(const Value condition, eval(*expr.condition));
  if (truth(condition)) return eval(*expr.then);
  if (expr.otherwise) return eval(*expr.otherwise);
  return undefined("the inline if-expression evaluated to false and no else section was defined");
}

Result<Value> Interpreter::eval_item(const ItemExpr& expr) {
  TRY_ASSIGN(const Value object, eval(*expr.object));
  TRY_ASSIGN(const Value index, eval(*expr.index));
  line_ = expr.line;
  return get_item(object, index);
}

Result<Value> Interpreter::eval_slice(const SliceExpr& expr) {
  TRY_ASSIGN(const Value object, eval(*expr.object));
  Value bounds[3];
  const Expr* parts[3] = {expr.start.get(), expr.stop.get(), expr.step.get()};
  for (int i = 0; i < 3; ++i) {
    if (!parts[i]) continue;
    TRY_ASSIGN(bounds[i], eval(*parts[i]));
  }
  line_ = expr.line;
  return slice(object, bounds[0], bounds[1], bounds[2]);
}

Result<CallArgs> Interpreter::eval_arguments(const Arguments& args) {
  CallArgs out;
  TRY_ASSIGN(out.positional, eval_all(args.positional));
  if (args.star) {
    TRY_ASSIGN(const Value extra, eval(*args.star));
    TRY_ASSIGN(const std::vector<Value> items, iterate(extra));
    out.positional.insert(out.positional.end(), items.begin(), items.end());
  }
  for (const auto& [name, expr] : args.keyword) {
    TRY_ASSIGN(Value value, eval(*expr));
    out.keyword.emplace_back(name, std::move(value));
  }
  if (args.star_star) {
    TRY_ASSIGN(const Value extra, eval(*args.star_star));
    if (!extra.is(Kind::dict)) return error("argument after ** must be a mapping");
    for (const auto& [key, value] : extra.dict().entries) {
      if (!key.is_string()) return error("keywords must be strings");
      for (const auto& [name, other] : out.keyword) {
        if (name == key.bytes()) return error("got multiple values for keyword argument '" + name + "'");
      }
      TRY(tick(out.keyword.size()));
      out.has_input_names = out.has_input_names || key.text().any_input();
      out.keyword.emplace_back(key.bytes(), value);
    }
  }
  return out;
}

Result<Value> Interpreter::eval_call(const CallExpr& expr, const Value* caller) {
  TRY_ASSIGN(const Value callee, eval(*expr.callee));
  TRY_ASSIGN(CallArgs args, eval_arguments(expr.args));
  if (caller) args.keyword.emplace_back("caller", *caller);
  line_ = expr.line;
  return call(callee, std::move(args));
}

// `block_text` is the operand of the innermost filter of a filter block.
Result<Value> Interpreter::eval_filter(const FilterExpr& expr, const Value* block_text) {
  Value operand;
  if (!expr.operand) {
    operand = *block_text;
  } else if (block_text) {
    TRY_ASSIGN(operand, eval_filter(static_cast<const FilterExpr&>(*expr.operand), block_text));
  } else {
    TRY_ASSIGN(operand, eval(*expr.operand));
  }
  TRY_ASSIGN(const CallArgs args, eval_arguments(expr.args));
  line_ = expr.line;
  return apply_filter(expr.name, operand, args);
}

Result<Value> Interpreter::apply_filter(const std::string& name, const Value& operand, const CallArgs& args) {
  const Builtin filter = find_filter(name);
  if (!filter) return error("no filter named '" + name + "'" + left_out_note(NameKind::filter, name));
  TRY(tick());
  return filter(*this, operand, args);
}

Result<Value> Interpreter::apply_test(const std::string& name, const Value& operand, const CallArgs& args) {
  const Builtin test = find_test(name);
  if (!test) return error("no test named '" + name + "'" + left_out_note(NameKind::test, name));
  TRY(tick());
  return test(*this, operand, args);
}

Result<Value> Interpreter::call(const Value& callee, CallArgs args) {
  switch (callee.kind()) {
    case Kind::function: {
      const auto& function = callee.as<FunctionObject>();
      return function.call(*this, function.self, args);
    }
    case Kind::macro: return call_macro(callee.as<MacroObject>(), std::move(args));
    case Kind::loop: return call_loop(callee.as<LoopObject>(), args);
    case Kind::undefined: return error(callee.as<UndefinedObject>().message);
    default: return error(std::string("'") + type_name(callee) + "' object is not callable");
  }
}

Status Interpreter::bind(const char* function, const CallArgs& args, std::initializer_list<const char*> names,
                         size_t n_required, Value* out) {
  const size_t n = names.size();
  if (args.positional.size() > n) {
    return error(std::string(function) + "() takes at most " + std::to_string(n) + " arguments (" +
                 std::to_string(args.positional.size()) + " given)");
  }
  for (size_t i = 0; i < n; ++i) out[i] = i < args.positional.size() ? args.positional[i] : Value::missing();
  for (const auto& [key, value] : args.keyword) {
    const auto* name = names.begin();
    while (name != names.end() && key != *name) ++name;
    if (name == names.end()) {
      return error(std::string(function) + "() got an unexpected keyword argument '" + key + "'");
    }
    Value& slot = out[name - names.begin()];
    if (!slot.is_missing()) return error(std::string(function) + "() got multiple values for argument '" + key + "'");
    slot = value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (out[i].is_missing()) {
      const char* name = names.begin()[i];
      return error(std::string(function) + "() missing required argument '" + (*name == '/' ? name + 1 : name) + "'");
    }
  }
  return Ok{};
}

}  // namespace chimere::jinja
