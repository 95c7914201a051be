// A plugin of clang-tidy 19 that keeps its checks out of system headers, as clang-tidy 21 does by itself.
//
// clang-tidy 19 walks the whole syntax tree, Boost and the standard library included, and throws away what it finds
// there. Nine tenths of its time go into that. The matcher below is called for the root of the tree before its children
// are visited, and narrows the walk to declarations outside of system headers.

#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/AST/ASTContext.h>
#include <clang/ASTMatchers/ASTMatchFinder.h>
#include <vector>

namespace {

class Scope : public clang::tidy::ClangTidyCheck {
 public:
  using ClangTidyCheck::ClangTidyCheck;

  void registerMatchers(clang::ast_matchers::MatchFinder* finder) override {
    finder->addMatcher(clang::ast_matchers::translationUnitDecl().bind("root"), this);
  }

  void check(const clang::ast_matchers::MatchFinder::MatchResult& result) override {
    const auto& sources = *result.SourceManager;
    std::vector<clang::Decl*> ours;
    for (auto* decl : result.Context->getTranslationUnitDecl()->decls())
      if (!sources.isInSystemHeader(sources.getExpansionLoc(decl->getLocation()))) ours.push_back(decl);
    result.Context->setTraversalScope(ours);
  }
};

class Module : public clang::tidy::ClangTidyModule {
 public:
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& factories) override {
    factories.registerCheck<Scope>("fabric-scope");
  }
};

const clang::tidy::ClangTidyModuleRegistry::Add<Module> kModule("fabric-module", "Leaves system headers out.");

}  // namespace
