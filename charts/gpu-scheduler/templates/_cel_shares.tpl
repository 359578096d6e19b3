{{/*
CEL of the policies for pods that ask for a share by themselves. They do what jobs/share.py does, and tests compare
the two. Definitions are expressions over `object`; N is a container's number, from 64 on an init container's.
*/}}

{{/*
Keys with which pods ask (api/share_keys.py): our own, and another scheduler's where the namespace's label says so. The
conditions of policies do not know the namespace: they ask for any of them.
*/}}
{{- define "gpu-scheduler.cel.compat" -}}
(has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels[?'gpu-scheduler.io/compat'].orValue('') : '')
{{- end }}
{{- define "gpu-scheduler.cel.ownLimits" -}}
['gpu-scheduler.io/milligpu', 'gpu-scheduler.io/gpu-mib']
{{- end }}
{{- define "gpu-scheduler.cel.peersLimits" -}}
(variables.compat == 'hami' ? ['nvidia.com/gpu', 'nvidia.com/gpumem', 'nvidia.com/gpumem-percentage', 'nvidia.com/gpucores'] :
variables.compat in ['kai', 'nvidia'] ? ['nvidia.com/gpu'] : [])
{{- end }}
{{- define "gpu-scheduler.cel.anyLimit" -}}
size(k) < 64 && k.matches('^(gpu-scheduler[.]io/(milligpu|gpu-mib)|nvidia[.]com/gpu(mem|mem-percentage|cores)?)$')
{{- end }}

{{/* Keys of the pod, by form: names a container, a share, memory, devices. */}}
{{- define "gpu-scheduler.cel.forms" -}}
([['gpu-scheduler.io/gpu-container', 'gpu-scheduler.io/gpu', 'gpu-scheduler.io/gpu-memory', 'gpu-scheduler.io/gpu-devices']]
+ (variables.compat == 'kai' ? [['gpu-fraction-container-name', 'gpu-fraction', 'gpu-memory', 'gpu-fraction-num-devices']] : []))
{{- end }}

{{/* Annotations with the name of a container c in their key, of which the first that is there counts (api/share_keys.py, of_container). */}}
{{- define "gpu-scheduler.cel.named" -}}
['nvidia.com/container.' + c.name + '.gpu-memory.request', 'nvidia.com/container.' + c.name + '.gpu-memory.limit'].filter(k, k in variables.notes)
{{- end }}
{{- define "gpu-scheduler.cel.isNamed" -}}
('nvidia.com/container.' + c.name + '.gpu-memory.request' in variables.notes || 'nvidia.com/container.' + c.name + '.gpu-memory.limit' in variables.notes)
{{- end }}
{{- define "gpu-scheduler.cel.namedKey" -}}
nvidia[.]com/container[.][a-z0-9-]+[.]gpu-memory[.](request|limit)
{{- end }}

{{/* Whether a form f is used; only ours may be a label. */}}
{{- define "gpu-scheduler.cel.isUsed" -}}
(f[1] in variables.notes || f[2] in variables.notes || (f[1] == 'gpu-scheduler.io/gpu' && f[1] in variables.tags))
{{- end }}

{{/* What the limits of a container c say: keys; of another scheduler's none where it wants no GPU. */}}
{{- define "gpu-scheduler.cel.limitsOf" -}}
(!(has(c.resources) && has(c.resources.limits)) ? [] : variables.limits.filter(k, k in c.resources.limits
&& (k.startsWith('gpu-scheduler.io/') || !('nvidia.com/gpu' in c.resources.limits)
|| quantity(string(c.resources.limits['nvidia.com/gpu'])).compareTo(quantity('0')) != 0)))
{{- end }}

{{/* Whether a pod says something that asks for GPUs here or elsewhere. No label takes it out of that (docs/adr/0060). */}}
{{- define "gpu-scheduler.cel.mayAsk" -}}
((has(object.metadata.labels) && 'gpu-scheduler.io/gpu' in object.metadata.labels)
|| (has(object.metadata.annotations) && ['gpu-scheduler.io/gpu', 'gpu-scheduler.io/gpu-memory', 'gpu-scheduler.io/asked',
'gpu-fraction', 'gpu-memory'].exists(k, k in object.metadata.annotations))
|| (has(object.metadata.annotations) && object.metadata.annotations.exists(k, k.startsWith('nvidia.com/container.')))
|| object.spec.containers.exists(c, has(c.resources) && has(c.resources.limits)
&& c.resources.limits.exists(k, {{ include "gpu-scheduler.cel.anyLimit" . }}))
|| (has(object.spec.initContainers) && object.spec.initContainers.exists(c, has(c.resources) && has(c.resources.limits)
&& c.resources.limits.exists(k, {{ include "gpu-scheduler.cel.anyLimit" . }}))))
{{- end }}

{{/* Whether the operator makes a pod of its own, such as a holder: who asks proves it, and no label. */}}
{{- define "gpu-scheduler.cel.ofOperator" -}}
(request.namespace == '{{ .Release.Namespace }}' && {{ include "gpu-scheduler.cel.byOperator" . }})
{{- end }}

{{/* What policies know of a pod by name, before they ask whether it asks. */}}
{{- define "gpu-scheduler.cel.reading" }}
- name: compat
  expression: >-
    {{ include "gpu-scheduler.cel.compat" . }}
- name: notes
  expression: "has(object.metadata.annotations) ? object.metadata.annotations : {}"
- name: tags
  expression: "has(object.metadata.labels) ? object.metadata.labels : {}"
- name: inits
  expression: "has(object.spec.initContainers) ? object.spec.initContainers : []"
- name: ours
  expression: >-
    {{ include "gpu-scheduler.cel.isOurs" . | nindent 4 | trim }}
- name: limits
  expression: >-
    {{ include "gpu-scheduler.cel.ownLimits" . }} + {{ include "gpu-scheduler.cel.peersLimits" . | nindent 4 | trim }}
- name: used
  expression: >-
    {{ include "gpu-scheduler.cel.forms" . | nindent 4 | trim }}.filter(f, {{ include "gpu-scheduler.cel.isUsed" . }})
- name: sidecars
  expression: >-
    lists.range(variables.inits.size()).filter(i, has(variables.inits[i].restartPolicy)
    && variables.inits[i].restartPolicy == 'Always')
- name: places
  expression: >-
    variables.used.map(f, (!(f[0] in variables.notes) ? [0] :
    lists.range(object.spec.containers.size()).filter(i, object.spec.containers[i].name == variables.notes[f[0]])
    + variables.sidecars.filter(i, variables.inits[i].name == variables.notes[f[0]]).map(i, i + 64)
    + variables.inits.filter(c, c.name == variables.notes[f[0]]).map(c, -2) + [-1])[0])
- name: limited
  expression: >-
    lists.range(object.spec.containers.size()).filter(i, [object.spec.containers[i]].exists(c,
    {{ include "gpu-scheduler.cel.limitsOf" . | nindent 4 | trim }} != []))
    + variables.sidecars.filter(i, [variables.inits[i]].exists(c,
    {{ include "gpu-scheduler.cel.limitsOf" . | nindent 4 | trim }} != [])).map(i, i + 64)
- name: naming # keys that name a container, whether there is one or not
  expression: >-
    variables.compat != 'kai' ? [] : variables.notes.filter(k, k.startsWith('nvidia.com/container.') && size(k) < 200
    && k.matches('^{{ include "gpu-scheduler.cel.namedKey" . }}$'))
- name: named # containers that they name
  expression: >-
    variables.naming == [] ? [] :
    lists.range(object.spec.containers.size()).filter(i, [object.spec.containers[i]].exists(c, {{ include "gpu-scheduler.cel.isNamed" . }}))
    + variables.sidecars.filter(i, [variables.inits[i]].exists(c, {{ include "gpu-scheduler.cel.isNamed" . }})).map(i, i + 64)
- name: ending # init containers that ask, and end before the others start
  expression: >-
    variables.inits.filter(c, !(has(c.restartPolicy) && c.restartPolicy == 'Always')
    && ({{ include "gpu-scheduler.cel.limitsOf" . | nindent 4 | trim }} != []
    || (variables.naming != [] && {{ include "gpu-scheduler.cel.isNamed" . }}))).map(c, c.name)
- name: nobody # keys that name no container
  expression: >-
    variables.naming == [] ? [] : [variables.inits.map(c, c.name) + object.spec.containers.map(c, c.name)].map(all,
    variables.naming.filter(k, !(k.substring(21, k.lastIndexOf('.gpu-memory.')) in all))).flatten()
- name: asks
  expression: >-
    variables.unclear == [] && !variables.ours && (variables.used != [] || variables.limited != [] || variables.ending != []
    || variables.naming != [] || 'gpu-scheduler.io/asked' in variables.notes)
{{- end }}

{{/*
Whether it was made ours before: by somebody who rendered it, in another round of admission, or as a GPUJob's. Anybody may
write what looks like it, so it has to wait for the operator as well, which alone can start such a pod, and looks at it
before.
*/}}
{{- define "gpu-scheduler.cel.isOurs" -}}
(has(object.metadata.annotations)
&& object.metadata.annotations.exists(k, size(k) < 64 && k.matches('^gpu-scheduler[.]io/c[0-9]+-devices$'))
&& ('gpu-scheduler.io/asked' in object.metadata.annotations || ({{ include "gpu-scheduler.cel.labelled" . }}
&& {{ include "gpu-scheduler.cel.keepsThePlugin" . }} == []))
&& {{ include "gpu-scheduler.cel.waitsForUs" (dict "of" "object.spec") }})
{{- end }}

{{/* All containers in one list. */}}
{{- define "gpu-scheduler.cel.everyContainer" -}}
(has(object.spec.initContainers) ? object.spec.initContainers + object.spec.containers : object.spec.containers)
{{- end }}

{{/* Variables that the scheduler sets. */}}
{{- define "gpu-scheduler.cel.reservedVariables" -}}
['NVIDIA_VISIBLE_DEVICES', 'GPU_MEMORY_LIMIT_MIB', 'GPUJOB_NAME', 'GPUJOB_INDEX', 'GPUJOB_COMPLETIONS', 'GPUJOB_ROLE',
'GPUJOB_WORLD_SIZE', 'GPUJOB_HOSTS']
{{- end }}

{{/* Names of containers that set one of these by themselves. */}}
{{- define "gpu-scheduler.cel.setsReserved" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, has(c.env) && c.env.exists(e, e.name.startsWith('GPUCAP_')
|| e.name in {{ include "gpu-scheduler.cel.reservedVariables" . }})).map(c, c.name)
{{- end }}

{{/* Whether something at a path (.path, in CEL) is in a place of ours, or may be. */}}
{{- define "gpu-scheduler.cel.isOurPlace" -}}
({{ .path }}.matches('(^|/)[.][.]?(/|$)|//')
|| ('/' + {{ .path }} + '/').replace('//', '/').startsWith('/etc/gpu-scheduler/')
|| ({{ include "gpu-scheduler.cel.isCapped" .root }}
&& ('/' + {{ .path }} + '/').replace('//', '/').matches('^/(etc/ld[.]so[.]preload|opt/gpu-scheduler)/')))
{{- end }}

{{/*
Names of containers with something in places of ours, or with volumes of ours. The kubelet mounts the file for the
termination message over all volumes.
*/}}
{{- define "gpu-scheduler.cel.mountsReserved" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, (has(c.volumeMounts) && c.volumeMounts.exists(m,
(size(m.name) < 64 && m.name.matches('^gpu-scheduler-c[0-9]+$'))
|| {{ include "gpu-scheduler.cel.isOurPlace" (dict "path" "m.mountPath" "root" .) }}
|| ({{ include "gpu-scheduler.cel.isCapped" . }} && (m.name == 'gpu-scheduler-cap'
|| (('/' + m.mountPath + '/').replace('//', '/') == '/opt/' && has(m.readOnly) && m.readOnly)))))
|| (has(c.terminationMessagePath)
&& {{ include "gpu-scheduler.cel.isOurPlace" (dict "path" "c.terminationMessagePath" "root" .) }})).map(c, c.name)
{{- end }}

{{/* Names of volumes and init containers that are ours. */}}
{{- define "gpu-scheduler.cel.namesReserved" -}}
((has(object.spec.volumes) ? object.spec.volumes.filter(v, (size(v.name) < 64 && v.name.matches('^gpu-scheduler-c[0-9]+$'))
|| (v.name == 'gpu-scheduler-cap' && {{ include "gpu-scheduler.cel.isCapped" . }})).map(v, v.name) : [])
+ ({{ include "gpu-scheduler.cel.isCapped" . }} ?
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, c.name == 'gpu-scheduler-cap').map(c, c.name) : []))
{{- end }}

{{/* Names of containers that ask the device plugin for what is not taken from it. */}}
{{- define "gpu-scheduler.cel.asksThePlugin" -}}
(object.spec.containers.filter(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k,
size(k) < 80 && k.matches('^nvidia[.]com/(gpu([.].+)?|mig-.+)$') && !(k in variables.limits))).map(c, c.name)
+ variables.inits.filter(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k,
size(k) < 80 && k.matches('^nvidia[.]com/(gpu([.].+)?|mig-.+)$') && !(k in variables.limits && has(c.restartPolicy) && c.restartPolicy == 'Always'))).map(c, c.name))
{{- end }}

{{/* The same of a pod that was made ours: all of that was taken out of it, and no GPUJob's pod has any. */}}
{{- define "gpu-scheduler.cel.keepsThePlugin" -}}
{{ include "gpu-scheduler.cel.everyContainer" . }}.filter(c, has(c.resources) && has(c.resources.limits) && c.resources.limits.exists(k,
k == 'nvidia.com/gpu' || k.startsWith('nvidia.com/gpu.') || k.startsWith('nvidia.com/mig-'))).map(c, c.name)
{{- end }}

{{/* Whether somebody else is to place it, whom the namespace does not leave. */}}
{{- define "gpu-scheduler.cel.isPlacedByOthers" -}}
((has(object.spec.nodeName) && object.spec.nodeName != '') || (has(object.spec.schedulerName)
&& !(object.spec.schedulerName in ['', 'default-scheduler', 'gpu-scheduler']
+ (variables.compat == 'hami' ? ['hami-scheduler'] : variables.compat == 'kai' ? ['kai-scheduler', 'runai-scheduler'] : []))))
{{- end }}

{{/* Whether it may take too long to end. */}}
{{- define "gpu-scheduler.cel.endsLate" -}}
(has(object.spec.terminationGracePeriodSeconds) && object.spec.terminationGracePeriodSeconds > 3600)
{{- end }}

{{/* Whether a pod can be made ours: what is in the way is said by the policy that refuses it. */}}
{{- define "gpu-scheduler.cel.canBeOurs" -}}
(!{{ include "gpu-scheduler.cel.isPlacedByOthers" . }} && !{{ include "gpu-scheduler.cel.endsLate" . }}
&& variables.places.all(n, n >= 0) && variables.ending == [] && variables.nobody == []
&& {{ include "gpu-scheduler.cel.setsReserved" . }} == [] && {{ include "gpu-scheduler.cel.mountsReserved" . }} == []
&& {{ include "gpu-scheduler.cel.namesReserved" . }} == [] && {{ include "gpu-scheduler.cel.asksThePlugin" . }} == []
&& !('gpu-scheduler.io/asked' in variables.notes))
{{- end }}

{{/* Whether libgpucap is put into it. */}}
{{- define "gpu-scheduler.cel.isCapped" -}}
{{- if .Values.isolation.interposer -}}
((has(object.metadata.annotations) && 'gpu-scheduler.io/isolation' in object.metadata.annotations ?
object.metadata.annotations['gpu-scheduler.io/isolation'] : '{{ .Values.isolation.default }}') == 'interposer')
{{- else -}}
false
{{- end }}
{{- end }}

{{/* Whether kube-scheduler has to see it, as jobs/write_path.py says. */}}
{{- define "gpu-scheduler.cel.isGated" -}}
(!(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller))
|| (has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.persistentVolumeClaim) || has(v.ephemeral)
|| has(v.gcePersistentDisk) || has(v.awsElasticBlockStore) || has(v.iscsi) || has(v.rbd)))
|| (has(object.spec.topologySpreadConstraints) && object.spec.topologySpreadConstraints.size() > 0)
|| (has(object.spec.affinity) && ((has(object.spec.affinity.podAffinity)
&& has(object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution)
&& object.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.size() > 0)
|| (has(object.spec.affinity.podAntiAffinity)
&& has(object.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution)
&& object.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.size() > 0)))
|| (has(object.spec.resourceClaims) && object.spec.resourceClaims.size() > 0)
|| {{ include "gpu-scheduler.cel.everyContainer" . }}.exists(c, has(c.ports) && c.ports.exists(p,
(has(p.hostPort) && p.hostPort > 0) || (has(object.spec.hostNetwork) && object.spec.hostNetwork))))
{{- end }}

{{/* A variable with the value of an annotation (.of, in CEL) of container n. */}}
{{- define "gpu-scheduler.cel.fromAnnotation" -}}
dyn({"name": dyn("{{ .name }}"), "valueFrom": dyn({"fieldRef": dyn({"fieldPath": "metadata.annotations['gpu-scheduler.io/c" + string(n) + "-{{ .of }}']"})})})
{{- end }}

{{/* A file of container n with the value of an annotation. */}}
{{- define "gpu-scheduler.cel.fileOf" -}}
dyn({"path": dyn("{{ .path }}"), "fieldRef": dyn({"fieldPath": "metadata.annotations['gpu-scheduler.io/c" + string(n) + "-{{ .of }}']"})})
{{- end }}

{{/* A mount of the library's volume. */}}
{{- define "gpu-scheduler.cel.capMount" -}}
dyn({"name": dyn("gpu-scheduler-cap"), "mountPath": dyn("{{ .path }}"), "subPath": dyn({{ .sub }}){{ if .readOnly }}, "readOnly": dyn(true){{ end }}})
{{- end }}

{{/*
Rules about what a pod asks for. Each holds of values that are bound to names: its own annotations (.notes), labels
(.tags), the annotation `asked` and what it says, container by container (.parts) and by unit, as words `key=value`. The
condition of the policy and its validations use the same ones.
*/}}
{{- define "gpu-scheduler.cel.ruleReadable" -}}
{{ .asked }}.matches('^[0-9]+:[^=,:;]+=[^=,;]*(,[^=,:;]+=[^=,;]*)*(;[0-9]+:[^=,:;]+=[^=,;]*(,[^=,:;]+=[^=,;]*)*)*$')
{{- end }}
{{- define "gpu-scheduler.cel.partsOf" -}}
{{ .asked }}.split(';').map(p, p.split(':')[1].split(','))
{{- end }}
{{- define "gpu-scheduler.cel.keysOf" -}}
{{- get (dict
  "shares" "gpu-scheduler[.]io/gpu|gpu-fraction"
  "memories" (printf "gpu-scheduler[.]io/gpu-memory|%s" (include "gpu-scheduler.cel.namedKey" .))
  "counts" "gpu-scheduler[.]io/gpu-devices|gpu-fraction-num-devices"
  "millis" "gpu-scheduler[.]io/milligpu"
  "mibs" "gpu-scheduler[.]io/gpu-mib|nvidia[.]com/gpumem|gpu-memory"
  "percents" "nvidia[.]com/gpumem-percentage"
  "wholes" "nvidia[.]com/gpu"
  "cores" "nvidia[.]com/gpucores") . }}
{{- end }}
{{- define "gpu-scheduler.cel.said" -}}
{{ .parts }}.map(p, p.filter(w, w.matches('^({{ include "gpu-scheduler.cel.keysOf" .unit }})='))).flatten()
{{- end }}
{{- define "gpu-scheduler.cel.ruleOneWay" -}}
{{ .parts }}.all(p, p.all(w, w.matches('^nvidia[.]com/gpu(mem|mem-percentage|cores)?=')) || (
p.filter(w, w.matches('^(gpu-scheduler[.]io/(gpu|gpu-memory|milligpu|gpu-mib)|gpu-fraction|gpu-memory|{{ include "gpu-scheduler.cel.namedKey" . }})=')).size() == 1
&& p.all(w, w.matches('^(gpu-scheduler[.]io/(gpu|gpu-memory|milligpu|gpu-mib|gpu-devices)|gpu-fraction|gpu-memory|gpu-fraction-num-devices|{{ include "gpu-scheduler.cel.namedKey" . }})='))))
{{- end }}
{{- define "gpu-scheduler.cel.ruleContainers" -}}
{{ .parts }}.size() <= 16
{{- end }}
{{- define "gpu-scheduler.cel.ruleOnePlace" -}}
!{{ .shares }}.exists(w, w.startsWith('gpu-scheduler.io/gpu=') && w.contains('|'))
{{- end }}
{{- define "gpu-scheduler.cel.ruleShare" -}}
{{ .shares }}.all(w, (w.startsWith('gpu-scheduler.io/gpu=') && w.contains('|')) || [w.split('=')[1]].all(g,
g.matches('^[0-9]{1,9}([.][0-9]{1,9})?$') && double(g) > 0.0 && double(g) <= 1024.0
&& (double(g) > 1.0 ? g.matches('^[0-9]+([.]0+)?$') : g.matches('^[0-9]+([.][0-9]{1,3}0*)?$'))))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMemory" -}}
{{ .memories }}.map(w, w.split('=')[1]).all(m, isQuantity(m) && quantity(m).compareTo(quantity('1Mi')) >= 0
&& quantity(m).compareTo(quantity('16Ti')) <= 0)
{{- end }}
{{- define "gpu-scheduler.cel.ruleDevices" -}}
({{ .counts }} == [] || ({{ .counts }}.map(w, w.split('=')[1]).all(n, n.matches('^[1-9][0-9]?$') && int(n) <= 64)
&& {{ .parts }}.filter(p, p.exists(w, w.matches('^({{ include "gpu-scheduler.cel.keysOf" "counts" }})='))).all(p,
p.filter(w, w.matches('^({{ include "gpu-scheduler.cel.keysOf" "shares" }})=')).map(w, w.split('=')[1]).all(g,
!g.matches('^[0-9]{1,9}([.][0-9]{1,9})?$') || double(g) < 1.0))))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMilli" -}}
{{ .millis }}.map(w, w.split('=')[1]).all(n, n.matches('^[1-9][0-9]{0,6}$') && (int(n) <= 1000 || (int(n) % 1000 == 0 && int(n) <= 1024000)))
{{- end }}
{{- define "gpu-scheduler.cel.ruleMib" -}}
{{ .mibs }}.map(w, w.split('=')[1]).all(n, n.matches('^[1-9][0-9]{0,7}$') && int(n) <= 16777216)
{{- end }}
{{- define "gpu-scheduler.cel.rulePercent" -}}
{{ .percents }}.all(w, w.matches('=([1-9][0-9]?|100)$'))
{{- end }}
{{- define "gpu-scheduler.cel.ruleCores" -}}
{{ .cores }}.all(w, w.matches('=(0|[1-9][0-9]?|100)$'))
{{- end }}
{{- define "gpu-scheduler.cel.ruleWhole" -}}
{{ .wholes }}.all(w, w.matches('=([1-9]|[1-5][0-9]|6[0-4])$'))
{{- end }}
{{/* Words of a unit as a sentence begins with them: where they stand (no .place: a label or an annotation), and what they say. */}}
{{- define "gpu-scheduler.cel.told" -}}
{{ .words }}.map(w, {{ if .place }}'{{ .place }}['{{ else }}(w.startsWith('gpu-scheduler.io/gpu=') && !('gpu-scheduler.io/gpu' in variables.notes) ? 'metadata.labels[' : 'metadata.annotations['){{ end }} + w.split('=')[0] + ']: "' + w.split('=')[1] + '"').join(', ')
{{- end }}
{{- define "gpu-scheduler.cel.ruleType" -}}
{{ .notes }}[?'gpu-scheduler.io/type'].orValue('training') in ['training', 'interactive']
{{- end }}
{{- define "gpu-scheduler.cel.ruleIsolation" -}}
{{ .notes }}[?'gpu-scheduler.io/isolation'].orValue('framework') in ['interposer', 'framework']
{{- end }}
{{- define "gpu-scheduler.cel.rulePriority" -}}
{{ .notes }}[?'gpu-scheduler.io/priority'].orValue('0').matches('^(0|[1-9][0-9]?|100)$')
{{- end }}
{{- define "gpu-scheduler.cel.ruleTimeLimit" -}}
({{ .notes }}[?'gpu-scheduler.io/time-limit'].orValue('1').matches('^[1-9][0-9]{0,9}$')
&& int({{ .notes }}[?'gpu-scheduler.io/time-limit'].orValue('1')) <= 2147483647)
{{- end }}
{{- define "gpu-scheduler.cel.ruleModels" -}}
(!('gpu-scheduler.io/gpu-models' in {{ .notes }}) || [{{ .notes }}['gpu-scheduler.io/gpu-models'].split(',').filter(m, m.trim() != '')].all(all,
all.size() > 0 && all.size() <= 16))
{{- end }}
{{- define "gpu-scheduler.cel.ruleGang" -}}
(('gpu-scheduler.io/gang' in {{ .tags }}) == ('gpu-scheduler.io/gang-size' in {{ .notes }})
&& [['gpu-scheduler.io/gang', 'gpu-scheduler.io/gang-size'], ['kueue.x-k8s.io/pod-group-name', 'kueue.x-k8s.io/pod-group-total-count'],
['leaderworkerset.sigs.k8s.io/group-key', 'leaderworkerset.sigs.k8s.io/size']].all(g, !(g[0] in {{ .tags }} && g[1] in {{ .notes }})
|| {{ .notes }}[g[1]].matches('^([1-9][0-9]{0,2}|1000)$')))
{{- end }}
{{- define "gpu-scheduler.cel.ruleDistinct" -}}
(!('gpu-scheduler.io/distinct-gpus' in {{ .notes }}) || ({{ .notes }}['gpu-scheduler.io/distinct-gpus'] in ['true', 'false']
&& (has(object.spec.schedulingGroup)
|| ['gpu-scheduler.io/gang', 'kueue.x-k8s.io/pod-group-name', 'leaderworkerset.sigs.k8s.io/group-key'].exists(g, g in {{ .tags }}))))
{{- end }}

{{/* Whether what a pod of ours asks for can be meant: all rules, in an expression that needs no variables. */}}
{{- define "gpu-scheduler.cel.canBeMeant" -}}
{{- $all := dict "asked" "asked" "parts" "parts" "notes" "notes" "tags" "tags" }}
[has(object.metadata.annotations) ? object.metadata.annotations : {}].all(notes, [has(object.metadata.labels) ? object.metadata.labels : {}].all(tags,
{{- range $rule := list "Type" "Isolation" "Priority" "TimeLimit" "Models" "Gang" "Distinct" }}
{{ include (printf "gpu-scheduler.cel.rule%s" $rule) $all }} &&
{{- end }}
[notes[?'gpu-scheduler.io/asked'].orValue('')].all(asked, {{ include "gpu-scheduler.cel.ruleReadable" $all }}
&& [{{ include "gpu-scheduler.cel.partsOf" $all }}].all(parts,
{{ include "gpu-scheduler.cel.ruleOneWay" $all }} && {{ include "gpu-scheduler.cel.ruleContainers" $all }}
{{- range $unit, $rules := dict "shares" (list "OnePlace" "Share") "counts" (list "Devices") "memories" (list "Memory") "millis" (list "Milli") "mibs" (list "Mib") "percents" (list "Percent") "cores" (list "Cores") "wholes" (list "Whole") }}
&& [{{ include "gpu-scheduler.cel.said" (merge (dict "unit" $unit) $all) }}].all({{ $unit }}
{{- range $rule := $rules }}{{ if eq $rule (first $rules) }},{{ else }} &&{{ end }} {{ include (printf "gpu-scheduler.cel.rule%s" $rule) (merge (dict $unit $unit) $all) }}{{ end }})
{{- end }}))))
{{- end }}
