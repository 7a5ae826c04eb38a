/* Licences of the libraries in this file: NOTICE.txt */
import{h as a,i as b,j as c}from"./chunk-WISTTTKQ.js";import"./chunk-R7SOASUJ.js";import"./chunk-JCPNG7AZ.js";import"./chunk-VTKV7CEU.js";import"./chunk-OOJM4CTU.js";export{c as default,b as errorRate,a as verdict};
