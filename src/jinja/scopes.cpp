// scopes.cpp  Compile-time name binding with Jinja's rules.
#include "jinja/scopes.h"

#include <algorithm>
#include <map>
#include <set>

#include "jinja/builtins.h"
#include "jinja/lexer.h"

namespace chimere::jinja {
namespace {

// Names of one scope. Branches of an `if` are overlays on the table before the `if` and are merged afterwards.
class Symbols {
 public:
  explicit Symbols(const Symbols* outer) : outer_(outer) {}
  static Symbols branch_of(const Symbols& base) {
    Symbols branch(base.outer_);
    branch.base_ = &base;
    return branch;
  }

  void declare_parameter(NameId name) {
    stores_.insert(name);
    refs_[name] = LoadKind::parameter;
  }

  void store(NameId name) {
    stores_.insert(name);
    if (has_ref_here(name)) return;
    refs_[name] = outer_ && outer_->find_ref(name) ? LoadKind::alias : LoadKind::undefined;
  }

  void load(NameId name) {
    if (!find_ref(name)) refs_[name] = LoadKind::resolve;
  }

  void merge(const Symbols (&branches)[3]) {
    std::map<NameId, int> counts;
    for (const Symbols& branch : branches) {
      for (const NameId name : branch.stores_) {
        if (!has_store_here(name)) ++counts[name];
      }
    }
    for (const Symbols& branch : branches) {
      for (const auto& [name, load] : branch.refs_) refs_[name] = load;
      stores_.insert(branch.stores_.begin(), branch.stores_.end());
    }
    for (const auto& [name, count] : counts) {
      if (count == 3) continue;
      refs_[name] = outer_ && outer_->find_ref(name) ? LoadKind::alias : LoadKind::resolve;
    }
  }

  ScopePlan plan() const {
    ScopePlan plan;
    for (const auto& [name, load] : refs_) plan.slots.push_back({name, load});
    return plan;
  }

 private:
  bool has_ref_here(NameId name) const { return refs_.count(name) || (base_ && base_->has_ref_here(name)); }
  bool has_store_here(NameId name) const { return stores_.count(name) || (base_ && base_->has_store_here(name)); }
  bool find_ref(NameId name) const { return has_ref_here(name) || (outer_ && outer_->find_ref(name)); }

  const Symbols* outer_;
  const Symbols* base_ = nullptr;
  std::map<NameId, LoadKind> refs_;
  std::set<NameId> stores_;
};

class Planner {
 public:
  explicit Planner(Program& program) : program_(program) {
    const auto find = [&](const char* name) {
      const auto it = std::find(program.names.begin(), program.names.end(), name);
      return it == program.names.end() ? -1 : static_cast<NameId>(it - program.names.begin());
    };
    program.loop_name = find("loop");
    program.caller_name = find("caller");
    program.kwargs_name = find("kwargs");
    program.varargs_name = find("varargs");
  }

  Status run() {
    Symbols root(nullptr);
    collect(program_.body, root);
    program_.scope = root.plan();
    return visit(program_.body, root, false);
  }

 private:
  // Part one: the symbols of one scope. Bodies that open a scope of their own are not entered.
  void collect(const Body& body, Symbols& symbols) {
    for (const StmtPtr& stmt : body) collect(*stmt, symbols);
  }

  void collect(const Stmt& stmt, Symbols& symbols) {
    switch (stmt.kind) {
      case StmtKind::output:
        for (const ExprPtr& part : static_cast<const OutputStmt&>(stmt).parts) collect(part.get(), symbols);
        break;
      case StmtKind::if_: {
        const auto& node = static_cast<const IfStmt&>(stmt);
        collect(node.branches.front().first.get(), symbols);
        Symbols branches[3] = {Symbols::branch_of(symbols), Symbols::branch_of(symbols), Symbols::branch_of(symbols)};
        collect(node.branches.front().second, branches[0]);
        // Each elif is an `if` of its own inside the one "elif" branch.
        for (size_t i = 1; i < node.branches.size(); ++i) {
          collect(node.branches[i].first.get(), branches[1]);
          Symbols inner[3] = {Symbols::branch_of(branches[1]), Symbols::branch_of(branches[1]),
                              Symbols::branch_of(branches[1])};
          collect(node.branches[i].second, inner[0]);
          branches[1].merge(inner);
        }
        collect(node.otherwise, branches[2]);
        symbols.merge(branches);
        break;
      }
      case StmtKind::for_: collect(static_cast<const ForStmt&>(stmt).iterable.get(), symbols); break;
      case StmtKind::set:
        collect(static_cast<const SetStmt&>(stmt).value.get(), symbols);
        collect(static_cast<const SetStmt&>(stmt).target, symbols, false);
        break;
      case StmtKind::set_block: collect(static_cast<const SetBlockStmt&>(stmt).target, symbols, false); break;
      case StmtKind::macro: symbols.store(static_cast<const MacroStmt&>(stmt).name); break;
      case StmtKind::call_block: collect(static_cast<const CallBlockStmt&>(stmt).call.get(), symbols); break;
      case StmtKind::filter_block: collect(static_cast<const FilterBlockStmt&>(stmt).filter.get(), symbols); break;
      case StmtKind::with:
        for (const auto& [target, value] : static_cast<const WithStmt&>(stmt).bindings) collect(value.get(), symbols);
        break;
      case StmtKind::generation:
      case StmtKind::break_:
      case StmtKind::continue_: break;
    }
  }

  void collect(const Target& target, Symbols& symbols, bool as_parameter) {
    if (target.is_tuple) {
      for (const Target& member : target.members) collect(member, symbols, as_parameter);
    } else if (!target.attribute.empty()) {
      symbols.load(target.name);
    } else if (as_parameter) {
      symbols.declare_parameter(target.name);
    } else {
      symbols.store(target.name);
    }
  }

  void collect(const Expr* expr, Symbols& symbols) {
    for_each_name(expr, [&](NameId name) { symbols.load(name); });
  }

  // Part two: enter the scopes and check the filters and tests on the way. `lenient`: below an `if`.
  Status visit(Body& body, const Symbols& symbols, bool lenient) {
    for (StmtPtr& stmt : body) TRY(visit(*stmt, symbols, lenient));
    return Ok{};
  }

  Status visit(Stmt& stmt, const Symbols& symbols, bool lenient) {
    switch (stmt.kind) {
      case StmtKind::output:
        for (const ExprPtr& part : static_cast<OutputStmt&>(stmt).parts) TRY(check(part.get(), lenient));
        return Ok{};
      case StmtKind::if_: {
        auto& node = static_cast<IfStmt&>(stmt);
        for (auto& [condition, body] : node.branches) {
          TRY(check(condition.get(), true));
          TRY(visit(body, symbols, true));
        }
        return visit(node.otherwise, symbols, true);
      }
      case StmtKind::for_: return visit_for(static_cast<ForStmt&>(stmt), symbols, lenient);
      case StmtKind::set: return check(static_cast<SetStmt&>(stmt).value.get(), lenient);
      case StmtKind::set_block: {
        auto& node = static_cast<SetBlockStmt&>(stmt);
        TRY(check(node.filter.get(), false));
        return visit_scope(node.body, node.scope, Symbols(&symbols));
      }
      case StmtKind::macro: return visit_macro(static_cast<MacroStmt&>(stmt), symbols);
      case StmtKind::call_block: {
        auto& node = static_cast<CallBlockStmt&>(stmt);
        TRY(check(node.call.get(), lenient));
        return visit_macro(*node.caller, symbols);
      }
      case StmtKind::filter_block: {
        auto& node = static_cast<FilterBlockStmt&>(stmt);
        TRY(check(node.filter.get(), false));
        Symbols inner(&symbols);
        collect(node.body, inner);
        collect(node.filter.get(), inner);
        return finish_scope(node.body, node.scope, inner);
      }
      case StmtKind::generation: {
        auto& node = static_cast<GenerationStmt&>(stmt);
        return visit_scope(node.body, node.scope, Symbols(&symbols));
      }
      case StmtKind::with: {
        auto& node = static_cast<WithStmt&>(stmt);
        Symbols inner(&symbols);
        for (auto& [target, value] : node.bindings) {
          TRY(check(value.get(), lenient));
          collect(target, inner, true);
        }
        return visit_scope(node.body, node.scope, std::move(inner));
      }
      case StmtKind::break_:
      case StmtKind::continue_: return Ok{};
    }
    return Ok{};
  }

  Status visit_scope(Body& body, ScopePlan& plan, Symbols symbols) {
    collect(body, symbols);
    return finish_scope(body, plan, symbols);
  }

  Status finish_scope(Body& body, ScopePlan& plan, const Symbols& symbols) {
    plan = symbols.plan();
    return visit(body, symbols, false);
  }

  Status visit_for(ForStmt& node, const Symbols& symbols, bool lenient) {
    TRY(check(node.iterable.get(), lenient));
    TRY(check(node.condition.get(), false));
    if (program_.loop_name >= 0 &&
        (assigns(node.target, program_.loop_name) || assigns(node.body, program_.loop_name) ||
         assigns(node.otherwise, program_.loop_name))) {
      return template_error(node.line, "cannot assign to the special variable 'loop' in a loop");
    }
    if (node.condition) {
      Symbols test(&symbols);
      collect(node.target, test, true);
      collect(node.condition.get(), test);
      node.test_scope = test.plan();
    }
    Symbols body(&symbols);
    if (program_.loop_name >= 0) body.declare_parameter(program_.loop_name);
    collect(node.target, body, true);
    TRY(visit_scope(node.body, node.body_scope, std::move(body)));
    return visit_scope(node.otherwise, node.else_scope, Symbols(&symbols));
  }

  Status visit_macro(MacroStmt& node, const Symbols& symbols) {
    Symbols inner(&symbols);
    const auto is_parameter = [&](NameId name) {
      return std::find(node.parameters.begin(), node.parameters.end(), name) != node.parameters.end();
    };
    for_each_name(node.body, [&](NameId name) {
      if (is_parameter(name)) return;
      if (name == program_.caller_name) node.uses_caller = true;
      if (name == program_.kwargs_name) node.uses_kwargs = true;
      if (name == program_.varargs_name) node.uses_varargs = true;
    });
    if (node.uses_caller) inner.declare_parameter(program_.caller_name);
    if (node.uses_kwargs) inner.declare_parameter(program_.kwargs_name);
    if (node.uses_varargs) inner.declare_parameter(program_.varargs_name);
    for (const NameId parameter : node.parameters) inner.declare_parameter(parameter);
    for (const ExprPtr& value : node.defaults) {
      TRY(check(value.get(), false));
      collect(value.get(), inner);
    }
    return visit_scope(node.body, node.scope, std::move(inner));
  }

  static bool assigns(const Target& target, NameId name) {
    if (!target.is_tuple) return target.attribute.empty() && target.name == name;
    return std::any_of(target.members.begin(), target.members.end(),
                       [&](const Target& member) { return assigns(member, name); });
  }

  static bool assigns(const Body& body, NameId name) {
    return std::any_of(body.begin(), body.end(), [&](const StmtPtr& stmt) { return assigns(*stmt, name); });
  }

  static bool assigns(const Stmt& stmt, NameId name) {
    switch (stmt.kind) {
      case StmtKind::set: return assigns(static_cast<const SetStmt&>(stmt).target, name);
      case StmtKind::set_block: return assigns(static_cast<const SetBlockStmt&>(stmt).target, name);
      case StmtKind::if_: {
        const auto& node = static_cast<const IfStmt&>(stmt);
        return assigns(node.otherwise, name) ||
               std::any_of(node.branches.begin(), node.branches.end(),
                           [&](const auto& branch) { return assigns(branch.second, name); });
      }
      default: return false;
    }
  }

  template <class Visit>
  static void for_each_name(const Expr* expr, const Visit& fn) {
    for_each_child(expr, [&](const Expr* child) { for_each_name(child, fn); });
    if (expr && expr->kind == ExprKind::name) fn(static_cast<const NameExpr*>(expr)->name);
  }

  template <class Visit>
  static void for_each_child(const Expr* expr, const Visit& fn) {
    if (!expr) return;
    const auto each_argument = [&](const Arguments& args) {
      for (const ExprPtr& arg : args.positional) fn(arg.get());
      for (const auto& [key, arg] : args.keyword) fn(arg.get());
      fn(args.star.get());
      fn(args.star_star.get());
    };
    switch (expr->kind) {
      case ExprKind::constant:
      case ExprKind::name: break;
      case ExprKind::list:
      case ExprKind::tuple:
        for (const ExprPtr& item : static_cast<const ListExpr*>(expr)->items) fn(item.get());
        break;
      case ExprKind::dict:
        for (const auto& [key, value] : static_cast<const DictExpr*>(expr)->entries) {
          fn(key.get());
          fn(value.get());
        }
        break;
      case ExprKind::binary:
        fn(static_cast<const BinaryExpr*>(expr)->left.get());
        fn(static_cast<const BinaryExpr*>(expr)->right.get());
        break;
      case ExprKind::unary:
      case ExprKind::logical_not: fn(static_cast<const UnaryExpr*>(expr)->operand.get()); break;
      case ExprKind::logical_and:
      case ExprKind::logical_or:
        fn(static_cast<const LogicalExpr*>(expr)->left.get());
        fn(static_cast<const LogicalExpr*>(expr)->right.get());
        break;
      case ExprKind::concat:
        for (const ExprPtr& part : static_cast<const ConcatExpr*>(expr)->parts) fn(part.get());
        break;
      case ExprKind::compare:
        fn(static_cast<const CompareExpr*>(expr)->first.get());
        for (const auto& [op, operand] : static_cast<const CompareExpr*>(expr)->rest) fn(operand.get());
        break;
      case ExprKind::conditional: {
        const auto* node = static_cast<const ConditionalExpr*>(expr);
        fn(node->condition.get());
        fn(node->then.get());
        fn(node->otherwise.get());
        break;
      }
      case ExprKind::attribute: fn(static_cast<const AttributeExpr*>(expr)->object.get()); break;
      case ExprKind::item:
        fn(static_cast<const ItemExpr*>(expr)->object.get());
        fn(static_cast<const ItemExpr*>(expr)->index.get());
        break;
      case ExprKind::slice: {
        const auto* node = static_cast<const SliceExpr*>(expr);
        fn(node->object.get());
        fn(node->start.get());
        fn(node->stop.get());
        fn(node->step.get());
        break;
      }
      case ExprKind::call:
        fn(static_cast<const CallExpr*>(expr)->callee.get());
        each_argument(static_cast<const CallExpr*>(expr)->args);
        break;
      case ExprKind::filter:
      case ExprKind::test:
        fn(static_cast<const FilterExpr*>(expr)->operand.get());
        each_argument(static_cast<const FilterExpr*>(expr)->args);
        break;
    }
  }

  template <class Visit>
  static void for_each_name(const Body& body, const Visit& fn) {
    for (const StmtPtr& stmt : body) for_each_name(*stmt, fn);
  }

  // All names read anywhere in a statement, nested scopes included.
  template <class Visit>
  static void for_each_name(const Stmt& stmt, const Visit& fn) {
    switch (stmt.kind) {
      case StmtKind::output:
        for (const ExprPtr& part : static_cast<const OutputStmt&>(stmt).parts) for_each_name(part.get(), fn);
        break;
      case StmtKind::if_: {
        const auto& node = static_cast<const IfStmt&>(stmt);
        for (const auto& [condition, body] : node.branches) {
          for_each_name(condition.get(), fn);
          for_each_name(body, fn);
        }
        for_each_name(node.otherwise, fn);
        break;
      }
      case StmtKind::for_: {
        const auto& node = static_cast<const ForStmt&>(stmt);
        for_each_name(node.iterable.get(), fn);
        for_each_name(node.condition.get(), fn);
        for_each_name(node.body, fn);
        for_each_name(node.otherwise, fn);
        break;
      }
      case StmtKind::set: for_each_name(static_cast<const SetStmt&>(stmt).value.get(), fn); break;
      case StmtKind::set_block:
        for_each_name(static_cast<const SetBlockStmt&>(stmt).filter.get(), fn);
        for_each_name(static_cast<const SetBlockStmt&>(stmt).body, fn);
        break;
      case StmtKind::macro:
        for (const ExprPtr& value : static_cast<const MacroStmt&>(stmt).defaults) for_each_name(value.get(), fn);
        for_each_name(static_cast<const MacroStmt&>(stmt).body, fn);
        break;
      case StmtKind::call_block:
        for_each_name(static_cast<const CallBlockStmt&>(stmt).call.get(), fn);
        for_each_name(static_cast<const Stmt&>(*static_cast<const CallBlockStmt&>(stmt).caller), fn);
        break;
      case StmtKind::filter_block:
        for_each_name(static_cast<const FilterBlockStmt&>(stmt).filter.get(), fn);
        for_each_name(static_cast<const FilterBlockStmt&>(stmt).body, fn);
        break;
      case StmtKind::generation: for_each_name(static_cast<const GenerationStmt&>(stmt).body, fn); break;
      case StmtKind::with:
        for (const auto& [target, value] : static_cast<const WithStmt&>(stmt).bindings) for_each_name(value.get(), fn);
        for_each_name(static_cast<const WithStmt&>(stmt).body, fn);
        break;
      case StmtKind::break_:
      case StmtKind::continue_: break;
    }
  }

  Status check(const Expr* expr, bool lenient) {
    if (!expr) return Ok{};
    if (expr->kind == ExprKind::conditional) lenient = true;
    if (!lenient && (expr->kind == ExprKind::filter || expr->kind == ExprKind::test)) {
      const bool is_filter = expr->kind == ExprKind::filter;
      const std::string& name = static_cast<const FilterExpr*>(expr)->name;
      if (!(is_filter ? find_filter(name) : find_test(name))) {
        return template_error(expr->line, std::string("no ") + (is_filter ? "filter" : "test") + " named '" + name +
                                              "'" + left_out_note(is_filter ? NameKind::filter : NameKind::test, name));
      }
    }
    Status status = Ok{};
    for_each_child(expr, [&](const Expr* child) {
      if (status) status = check(child, lenient);
    });
    return status;
  }

  Program& program_;
};

}  // namespace

Status plan_scopes(Program& program) { return Planner(program).run(); }

}  // namespace chimere::jinja
