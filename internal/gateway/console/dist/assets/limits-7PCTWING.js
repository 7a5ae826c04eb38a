/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c}from"./chunk-H2KDUOTG.js";import"./chunk-OF6TOZ55.js";import"./chunk-OOJM4CTU.js";export{c as default,a as isOf,b as useLastRuns};
