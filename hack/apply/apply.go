// Package apply judges objects by a ValidatingAdmissionPolicy in this process, with the API server's own library. For tests.
//
// The library is the vendored release's, and differs between release branches. So no package of cmd or pkg may import this one, not
// even in a test: they compile on every branch. Tests of the policy itself are in hack/oracle.
package apply

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"
)

// Policy is one that is compiled as the API server does it.
type Policy struct{ validator validating.Validator }

// Compile compiles a policy on Services.
func Compile(policy *admissionv1.ValidatingAdmissionPolicy) (*Policy, error) {
	declared := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		return nil, err
	}
	for _, v := range policy.Spec.Variables {
		if result := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, declared, environment.StoredExpressions); result.Error != nil {
			return nil, fmt.Errorf("variable %s: %w: %s", v.Name, result.Error, v.Expression)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range policy.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&policy.Spec.MatchConditions[i]))
	}
	for _, v := range policy.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	var errs []error
	evaluator := func(expressions []cel.ExpressionAccessor) cel.ConditionEvaluator {
		e := compiler.CompileCondition(expressions, declared, environment.StoredExpressions)
		errs = append(errs, e.CompilationErrors()...)
		return e
	}
	fail := ptr.To(admissionv1.Fail) // whatever the policy says: an expression that fails is told
	matcher := matchconditions.NewMatcher(evaluator(conditions), fail, "policy", "validate", policy.Name)
	validator := validating.NewValidator(evaluator(validations), matcher, evaluator(nil), evaluator(messages), fail, nil)
	return &Policy{validator}, errors.Join(errs...)
}

// Apply returns why a Service is refused; nothing if it is not. It is made anew unless there is an old one. An error says that an
// expression failed.
func (p *Policy) Apply(ctx context.Context, svc, old *v1.Service) (refused string, err error) {
	operation, options, before := admission.Create, runtime.Object(&metav1.CreateOptions{}), runtime.Object(nil)
	if old != nil {
		operation, options, before = admission.Update, &metav1.UpdateOptions{}, old
	}
	kind, resource := v1.SchemeGroupVersion.WithKind("Service"), v1.SchemeGroupVersion.WithResource("services")
	attributes := admission.NewAttributesRecord(svc, before, kind, svc.Namespace, svc.Name, resource, "", operation, options, false, nil)
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: kind, VersionedObject: admission.NewLazyObject(svc), VersionedOldObject: admission.NewLazyObject(before),
	}
	result := p.validator.Validate(ctx, resource, versioned, nil, nil, celconfig.RuntimeCELCostBudget, nil)
	for _, d := range result.Decisions {
		if d.Evaluation == validating.EvalError {
			return "", errors.New(d.Message)
		}
		if d.Action == validating.ActionDeny {
			return d.Message, nil
		}
	}
	return "", nil
}
