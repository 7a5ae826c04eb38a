/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-ZTZSYD52.js";import"./chunk-YFRDY3RG.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
